"""The result under the name of the buffer."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import (
    keyword_removed,
    statement_replaced,
    without_keyword,
)

from .diagnose import Details


def _assigned(site: Site[Details]) -> Edits | None:
    code = without_keyword(site.program, site.place, "out")
    line = f"{site.details.out} = {code}\n"
    return statement_replaced(site.program, site.place, line) if code else None


propose: Propose[Details] = by_table(
    Fix("assign", _assigned, when=lambda d: d.alone and d.plain),
    Fix("assign", at_place(keyword_removed, "out"), when=lambda d: not d.alone),
)
