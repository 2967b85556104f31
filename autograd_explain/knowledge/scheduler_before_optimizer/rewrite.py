"""The scheduler's step behind the optimizer's."""

from autograd_explain.rewrite import move_after
from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.proposal import Edits

from .diagnose import Details


def _after_step(site: Site[Details]) -> Edits | None:
    step = site.details.step
    return None if step is None else move_after(site.program, site.place, step)


propose: Propose[Details] = by_table(Fix("after_step", _after_step, changes=True))
