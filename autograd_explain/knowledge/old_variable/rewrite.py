"""A tensor as it is, or made of the number."""

from autograd_explain.rewrite import torch_at
from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.transforms.call_edits import expression_replaced

from .diagnose import Details


def _tensor(site: Site[Details]) -> Edits | None:
    torch = torch_at(site.program, site.place)
    code = f"{torch}.tensor({site.details.data})"
    return None if torch is None else expression_replaced(site.program, site.place, code)


propose: Propose[Details] = by_table(
    Fix(
        "plain",
        lambda s: expression_replaced(s.program, s.place, s.details.data),
        when=lambda d: d.data != "" and not d.number,
    ),
    Fix("tensor", _tensor, when=lambda d: d.data != "" and d.number, changes=True),
)
