"""A result of the gradient's shape; no result where the hook only looks."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table

from .diagnose import Details
from .gradient_shape import in_its_place, of_gradients_shape, without_result

propose: Propose[Details] = by_table(
    Fix(
        "shape",
        lambda s: of_gradients_shape(s.program, s.place, s.details.gradient),
        when=lambda d: d.size,
    ),
    Fix(
        "part",
        lambda s: in_its_place(s.program, s.place, s.details.gradient),
        when=lambda d: d.size,
    ),
    Fix("nothing", at_place(without_result), when=lambda d: d.number, changes=False),
    changes=True,
)
