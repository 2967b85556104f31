"""Ask for the gradient before backward runs, or read it of the tensor that has it."""

from autograd_explain.model import What
from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.keep_gradient import gradient_of_whole, retained

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("gradient_of_whole", at_place(gradient_of_whole), when=lambda d: d.of_whole),
    Fix(
        "gradient_of_leaf",
        lambda s: expression_replaced(s.program, s.details.read, s.details.leaf),
        when=lambda d: bool(d.leaf),
        changes=True,
    ),
    Fix("retain_grad", lambda s: retained(s.program, s.finding)),
    at=What.FAILED,
)
