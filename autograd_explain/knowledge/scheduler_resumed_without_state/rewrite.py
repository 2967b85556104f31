"""The saved state first; or the initial rate noted, or no `last_epoch` at all."""

from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.transforms.call_edits import (
    called_sooner,
    keyword_removed,
    line_before,
)

from .diagnose import Details


def _initial_rate(site: Site[Details]) -> Edits | None:
    lines = (
        f"for group in {site.details.optimizer}.param_groups:\n"
        '    group.setdefault("initial_lr", group["lr"])\n'
    )
    return line_before(site.program, site.place, lines)


propose: Propose[Details] = by_table(
    Fix("load_first", lambda s: called_sooner(s.program, s.details.load, s.place)),
    Fix(
        "fresh",
        at_place(keyword_removed, "last_epoch"),
        when=lambda d: d.load is None and d.fresh,
        changes=True,
    ),
    Fix("initial_rate", _initial_rate, when=lambda d: d.load is None and not d.fresh, changes=True),
)
