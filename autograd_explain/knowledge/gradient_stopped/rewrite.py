"""Take back what was done for another use when that is over; compute what was kept again."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.remove_memoization import computed_anew
from autograd_explain.rewrite.transforms.undone import undone_behind

from .diagnose import Details


def _computed(site: Site[Details]) -> Edits | None:
    memory = site.details.memory
    return None if memory is None else computed_anew(site.program, memory.place)


propose: Propose[Details] = by_table(
    Fix("compute", _computed, changes=True, intended_difference=True),
    Fix(
        "undo",
        lambda s: undone_behind(s.program, s.details.call, s.details.opposite),
        changes=True,
        intended_difference=True,
    ),
)
