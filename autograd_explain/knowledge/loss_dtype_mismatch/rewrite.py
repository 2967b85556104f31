"""The target in the dtype of the prediction."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .diagnose import Details

_METHODS = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat16"}


def _cast(site: Site[Details]) -> Edits | None:
    wanted = site.details.wanted
    if wanted in _METHODS:
        return site.called(_METHODS[wanted])
    return site.replaced(f"{{x}}.to({{torch}}.{wanted})")


propose: Propose[Details] = by_table(Fix("cast_target", _cast, changes=True))
