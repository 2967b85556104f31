"""A tensor of the number."""

from autograd_explain.rewrite import torch_at
from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.transforms.call_edits import expression_replaced

from .diagnose import Details


def _tensor(site: Site[Details]) -> Edits | None:
    torch = torch_at(site.program, site.place)
    if torch is None:
        return None
    return expression_replaced(site.program, site.place, f"{torch}.tensor({{x}})")


propose: Propose[Details] = by_table(Fix("tensor", _tensor, when=lambda d: d.number))
