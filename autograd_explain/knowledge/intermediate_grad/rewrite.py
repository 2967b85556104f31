"""Ask for the gradient before backward runs, or read it of the tensor that has it."""

from autograd_explain.model import What
from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.keep_gradient import gradient_of_whole, retained

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("gradient_of_whole", at_place(gradient_of_whole), when=lambda d: d.of_whole),
    Fix(
        "gradient_of_leaf",
        lambda s: s.at(s.details.read).replaced("{leaf}", leaf=s.details.leaf),
        changes=True,
    ),
    Fix("retain_grad", lambda s: retained(s.program, s.finding, inside=s.details.inside)),
    at=What.FAILED,
)
