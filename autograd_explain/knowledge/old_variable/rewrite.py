"""A tensor as it is, or made of the number."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced

from .diagnose import Details


def _tensor(site: Site[Details]) -> Edits | None:
    code = f"{{torch}}.tensor({site.details.data})"
    return expression_replaced(site.program, site.place, code)


propose: Propose[Details] = by_table(
    Fix(
        "plain",
        lambda s: expression_replaced(s.program, s.place, s.details.data),
        when=lambda d: d.data != "" and not d.number,
    ),
    Fix("tensor", _tensor, when=lambda d: d.data != "" and d.number, changes=True),
)
