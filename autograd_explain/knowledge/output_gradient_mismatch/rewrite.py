"""Ones in the shape of the output: the gradient of its sum."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced

from .diagnose import Details


def _ones_like(site: Site[Details]) -> Edits | None:
    code = f"{{torch}}.ones_like({site.details.root})"
    return expression_replaced(site.program, site.place, code)


propose: Propose[Details] = by_table(
    Fix("ones_like", _ones_like, when=lambda d: d.ones, changes=True)
)
