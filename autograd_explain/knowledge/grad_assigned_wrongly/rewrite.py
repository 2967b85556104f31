"""The value in the dtype or on the device of the tensor; None for no gradient."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .diagnose import Details, Mismatch


def _converted(site: Site[Details]) -> Edits | None:
    attribute = "device" if site.details.mismatch is Mismatch.DEVICE else "dtype"
    return site.replaced(f"{{x}}.to({{tensor}}.{attribute})", tensor=site.details.tensor)


propose: Propose[Details] = by_table(
    Fix("none", lambda s: s.replaced("None"), when=lambda d: d.mismatch is Mismatch.NO_TENSOR),
    Fix("convert", _converted, when=lambda d: d.mismatch in (Mismatch.DTYPE, Mismatch.DEVICE)),
)
