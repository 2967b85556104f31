"""Take back what was done for another use when that is over; compute what was kept again."""

from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.remove_memoization import computed_anew, not_kept
from autograd_explain.rewrite.transforms.undone import undone_behind

from .diagnose import Details

propose: Propose[Details] = by_table(
    lambda s: not_kept(s.program, s.details.options),
    Fix(
        "compute",
        lambda s: computed_anew(s.program, s.details.memory.place) if s.details.memory else None,
    ),
    Fix("undo", lambda s: undone_behind(s.program, s.details.call, s.details.opposite)),
    changes=True,
)
