"""Dense gradients for a dense optimizer, or the optimizer for dense gradients."""

from autograd_explain.rewrite import Fix, Propose, by_table

from .diagnose import Details

propose: Propose[Details] = by_table(
    Fix("dense", lambda s: s.without("sparse"), when=lambda d: not d.dense),
    Fix(
        "adam",
        lambda s: s.replaced("{owner}.Adam{arguments}"),
        when=lambda d: d.dense,
        changes=True,
    ),
)
