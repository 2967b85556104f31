"""The target in the dtype of the prediction."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import call_behind, expression_replaced

from .diagnose import Details

_METHODS = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat16"}


def _cast(site: Site[Details]) -> Edits | None:
    wanted = site.details.wanted
    if wanted in _METHODS:
        return call_behind(site.program, site.place, _METHODS[wanted])
    return expression_replaced(site.program, site.place, f"{{x}}.to({{torch}}.{wanted})")


propose: Propose[Details] = by_table(Fix("cast_target", _cast, changes=True))
