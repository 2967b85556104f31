"""A copy in the CPU's memory; a tensor with data instead of one without."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import (
    call_behind,
    expression_replaced,
    keyword_set,
)

from .diagnose import Details


def _to_cpu(site: Site[Details]) -> Edits | None:
    steps = "detach().cpu" if site.details.graph else "cpu"
    if site.details.called:
        return call_behind(site.program, site.place, steps)
    return expression_replaced(site.program, site.place, f"{{x}}.{steps}().numpy()")


propose: Propose[Details] = by_table(
    Fix(
        "with_data", at_place(keyword_set, "device", '"cpu"'), when=lambda d: d.placed, changes=True
    ),
    Fix("to_cpu", _to_cpu, when=lambda d: not d.meta),
)
