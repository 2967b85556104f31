"""One number to differentiate: the mean, the sum, or the real part."""

from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.transforms.call_edits import call_behind, expression_replaced

from .diagnose import Details, ToNumber


def _mean(site: Site[Details]) -> Edits | None:
    return call_behind(site.program, site.place, "mean")


def _sum(site: Site[Details]) -> Edits | None:
    return call_behind(site.program, site.place, "sum")


propose: Propose[Details] = by_table(
    Fix(
        "real",
        at_place(expression_replaced, "{x}.real"),
        when=lambda d: d.to_number is ToNumber.REAL,
        changes=True,
    ),
    Fix("mean", _mean, when=lambda d: d.to_number is ToNumber.MEAN, changes=True),
    Fix("sum", _sum, when=lambda d: d.to_number is not ToNumber.REAL, changes=True),
    Fix("mean", _mean, when=lambda d: d.to_number is ToNumber.SUM, changes=True),
)
