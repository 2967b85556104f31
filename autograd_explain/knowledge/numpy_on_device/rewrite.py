"""A copy in the CPU's memory; a tensor with data instead of one without."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table

from .diagnose import Details


def _to_cpu(site: Site[Details]) -> Edits | None:
    steps = "detach().cpu" if site.details.graph else "cpu"
    if site.details.called:
        return site.called(steps)
    return site.replaced(f"{{x}}.{steps}().numpy()")


propose: Propose[Details] = by_table(
    Fix("with_data", lambda s: s.given("device", '"cpu"'), when=lambda d: d.placed, changes=True),
    Fix("to_cpu", _to_cpu, when=lambda d: not d.meta),
)
