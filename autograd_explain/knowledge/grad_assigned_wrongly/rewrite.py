"""The value in the dtype or on the device of the tensor; None for no gradient."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced

from .diagnose import Details, Mismatch


def _converted(site: Site[Details]) -> Edits | None:
    attribute = "device" if site.details.mismatch is Mismatch.DEVICE else "dtype"
    return expression_replaced(
        site.program, site.place, f"{{x}}.to({site.details.tensor}.{attribute})"
    )


propose: Propose[Details] = by_table(
    Fix(
        "none",
        at_place(expression_replaced, "None"),
        when=lambda d: d.mismatch is Mismatch.NO_TENSOR,
    ),
    Fix("convert", _converted, when=lambda d: d.mismatch in (Mismatch.DTYPE, Mismatch.DEVICE)),
)
