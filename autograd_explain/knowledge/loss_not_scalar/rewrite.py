"""One number to differentiate: the mean, the sum, or the real part."""

from autograd_explain.rewrite import Fix, Propose, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import call_behind, expression_replaced

from .diagnose import Details, ToNumber

_MEAN, _SUM = at_place(call_behind, "mean"), at_place(call_behind, "sum")

propose: Propose[Details] = by_table(
    Fix(
        "real",
        at_place(expression_replaced, "{x}.real"),
        when=lambda d: d.to_number is ToNumber.REAL,
    ),
    Fix("mean", _MEAN, when=lambda d: d.to_number is ToNumber.MEAN),
    Fix("sum", _SUM, when=lambda d: d.to_number is not ToNumber.REAL),
    Fix("mean", _MEAN, when=lambda d: d.to_number is ToNumber.SUM),
    changes=True,
)
