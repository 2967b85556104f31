"""The saved state first; or the initial rate noted, or no `last_epoch` at all."""

from autograd_explain.rewrite import Fix, Propose, by_table
from autograd_explain.rewrite.transforms.move_statement import move_before

from .diagnose import Details

_INITIAL_RATE = (
    'for group in {optimizer}.param_groups:\n    group.setdefault("initial_lr", group["lr"])\n'
)

propose: Propose[Details] = by_table(
    Fix(
        "load_first",
        lambda s: move_before(s.program, s.details.load, s.place, checked=False),
        changes=False,
    ),
    Fix("fresh", lambda s: s.without("last_epoch"), when=lambda d: d.load is None and d.fresh),
    Fix(
        "initial_rate",
        lambda s: s.before(_INITIAL_RATE, optimizer=s.details.optimizer),
        when=lambda d: d.load is None and not d.fresh,
    ),
    changes=True,
)
