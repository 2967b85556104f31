"""Rewrites of the user's program that keep its comments and layout (LibCST).

Every transformer of `transforms/` takes the program and a place of the report and returns
`tuple[Edit, ...]`, or None where the change cannot be made honestly here.  Nothing is run.  A place
is a line, or a line with the span of the statement or expression meant; `a; b`, one-line suites,
statements over several lines, magics and `!cmd` lines are fine.  Expressions (`target`, `expr`,
`operand` …) are given as the user writes them.

Here is what every cause needs, without LibCST, which a first `Site` or transformer imports.  The
table of a cause's rewrites:

    by_table(*rows, at=What.CAUSE, changes=False) -> propose
                                                  rows: Fix(key, edit, when=…, changes=False): where
                                                  when(details) holds, edit(site: Site) is proposed;
                                                  or functions that take a site and give proposals
    at_place(transform, *args, **kwargs) -> edit  what a transformer makes of the site's place
    differing(fix, edits, corrects=False, **facts) -> proposal
                                                  of what computes something else on purpose
    same(fix, edits) -> proposal                  of what computes the same
    torch_at(program, place) -> str | None        the name torch has there
"""

from typing import TYPE_CHECKING, Any

from ..model import Edits
from .engine.imports import torch_at
from .engine.proposal import Proposal, Propose, differing, same
from .transforms.table import Fix, at_place, by_table

if TYPE_CHECKING:
    from .transforms.spot import Site

__all__ = ["Edits", "Fix", "Proposal", "Propose", "Site", "at_place", "by_table", "differing"]
__all__ += ["same", "torch_at"]


def __getattr__(name: str) -> Any:
    """`Site` comes with LibCST."""
    if name != "Site":
        raise AttributeError(name)
    from .transforms.spot import Site

    return Site
