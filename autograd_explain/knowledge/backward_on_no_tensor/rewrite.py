"""Go backward from the tensor in the object, or from the sum of them; call the method."""

from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix(
        "part",
        lambda s: expression_replaced(s.program, s.details.root, s.details.part),
        when=lambda d: d.part != "",
    ),
    Fix(
        "add",
        lambda s: expression_replaced(s.program, s.details.root, f"sum({s.details.object})"),
        when=lambda d: d.all_losses and not d.part,
    ),
    Fix("call", lambda s: expression_replaced(s.program, s.details.maker, "{x}()")),
    changes=True,
)
