"""Ask for the gradient of a leaf; it needs no keeping."""

from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.call_edits import statement_replaced

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "requires_grad",
        lambda s: statement_replaced(s.program, s.place, f"{s.details.tensor}.requires_grad_()\n"),
        when=lambda d: d.uncut,
    )
)
