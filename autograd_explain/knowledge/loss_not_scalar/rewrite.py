"""One number to differentiate: the mean, the sum, or the real part."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details, ToNumber

_MEAN, _SUM = lambda s: s.called("mean"), lambda s: s.called("sum")

propose: Propose[Details] = by_table(
    Fix("magnitude", lambda s: s.at(*s.details.squared).called("abs")),
    Fix(
        "real",
        lambda s: s.at(s.details.root).replaced("{x}.real"),
        when=lambda d: d.to_number is ToNumber.REAL,
    ),
    Fix("mean", _MEAN, when=lambda d: d.to_number is ToNumber.MEAN),
    Fix("sum", _SUM, when=lambda d: d.to_number is not ToNumber.REAL),
    Fix("mean", _MEAN, when=lambda d: d.to_number is ToNumber.SUM),
    changes=True,
)
