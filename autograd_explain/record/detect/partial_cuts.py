"""Where values left the graph that a loss may depend on, while other terms reach what they came
from: only another run of the cell tells whether it does, and whether its gradient lacks that.

A `.detach()` or a `no_grad` that was written is taken at its word, but for five: where what left
is a term of a loss of which nothing else is computed, so that no gradient at all knows of it; where
the line detaches values that have no graph as well, as what a teacher and its student share does;
where a distribution drew a sample that it could have computed; where a package wrote it, which has
a switch for it; and where it drops the graph of a
derivative that was just recorded because the program asks for it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import takewhile
from types import CodeType

from ...library_switch import switch_around
from ..observe.call_sites import CallSites
from ..observe.code_positions import line_of
from .finding import CandidateFault, Mark
from .graph_cuts import Cuts, CutSite

#: Of what was written to stop a gradient, or ran where none is recorded.
_STOPS = ("detach", "data", "no_grad", "written", "operation")
_WRITTEN = ("detach", "data")
_DISTRIBUTIONS = "/torch/distributions/"
#: How late in a cell another run looks for what is first computed there, in seconds and rounds.
_SOON, _MAX_ROUNDS = 1.0, 200


def partial_cut(
    cuts: Cuts,
    sites: CallSites,
    roots: Sequence[Mark],
    since: int,
    is_helper: Callable[[int], bool],
    conditions: Callable[[int], Set[ast.AST]],
    told: Container[int] = (),
) -> CandidateFault | None:
    """What to ask of another run: `cut` are the calls by which values left, `backward` the roots,
    the last one first; `stops` are files and lines of those that were written as a stop.
    `is_helper` says of a site that all which its function does is to stop a gradient;
    `conditions` are what it depends on in the text whether a site runs;
    of what is `told` it is known that nothing of its term is in a graph."""
    if not roots:
        return None
    stops = [cut for cut in cuts.traced(since) if cut.way in _STOPS]
    idle = {_line(sites, site) for site in cuts.idle if stops}

    def is_asked(cut: CutSite) -> bool:
        if cut.site not in told and cuts.is_added(cut, since) and not _is_beside_hidden(cuts, cut):
            return True
        if is_drawn(sites, cut.site) or switch_at(sites, cut.site):
            return True
        if cut.derivative is not None and cut.way in _WRITTEN:
            return conditions(cut.site) <= conditions(cut.derivative)
        return _line(sites, cut.site) in idle and not is_helper(cut.site)

    asked = [cut for cut in stops if is_asked(cut)]
    found = {cut.site: cut for cut in (*cuts.fresh(since), *asked)}
    if not found:
        return None
    ordered = sorted(found.values(), key=lambda c: c.clock)
    marks = {"cut": tuple(Mark(c.site, c.clock) for c in ordered), "backward": tuple(roots)}
    traced = frozenset(cut.site for cut in asked)
    lines = frozenset(_lines(sites, traced))
    evidence = {"stops": lines, "traced": traced, "rounds": _rounds(cuts, found)}
    return CandidateFault("partial-cut", marks, evidence)


def _is_beside_hidden(cuts: Cuts, cut: CutSite) -> bool:
    """Whether a written stop is in a term with what was computed without recording of some of the
    same leaves: the term has no graph without it, either."""
    if cut.way not in _WRITTEN:
        return False
    others = (cuts.cuts[site] for site in cuts.of_terms_with({cut.site}))
    return any(c.way not in _WRITTEN and c.above.keys() & cut.above.keys() for c in others)


def _rounds(cuts: Cuts, asked: Iterable[int]) -> int:
    """How many backwards came before the last of these first ran, as in `if step > 100: loss +=
    penalty`: of those that a loss came after, and that another run soon gets to."""
    known = (cuts.first[site] for site in asked if site in cuts.first)
    found = (number for number, seconds in known if number < cuts.rounds and seconds < _SOON)
    return max((number for number in found if number < _MAX_ROUNDS), default=0)


def of_samples(suspect: CandidateFault, sites: CallSites) -> CandidateFault:
    """A cut by which parameters are lost, perhaps on purpose, told as a sample's where a
    distribution drew one there: then another run tells whether it is in the loss's way."""
    cut = suspect.marks["cut"][0].site if suspect.name == "graph-cut" else 0
    if suspect.sure or not is_drawn(sites, cut):
        return suspect
    stops = frozenset(_lines(sites, (cut,)))
    return replace(suspect, evidence={**suspect.evidence, "way": "sample", "stops": stops})


def of_functions(suspect: CandidateFault, sites: CallSites) -> CandidateFault:
    """What custom Functions read is told with how many of the user's lines, the innermost ones,
    stand in their `forward`."""
    if suspect.name != "graph-cut" or suspect.evidence["way"] != "function":
        return suspect
    steps = sites.all[suspect.marks["cut"][0].site].steps
    inside = takewhile(lambda step: step.code in suspect.evidence["within"], steps)
    evidence = {k: v for k, v in suspect.evidence.items() if k != "within"}
    return replace(suspect, evidence={**evidence, "inner": len(list(inside))})


def is_drawn(sites: CallSites, site: int) -> bool:
    """Whether a call is made by the `sample` of a distribution of torch's."""
    below = sites.all[site].below
    return any(name == "sample" and _DISTRIBUTIONS in _posix(file) for file, name in below)


def switch_at(sites: CallSites, site: int) -> str:
    """The switch of a package's by which it makes a call; "" where there is none."""
    lines = (at for at in sites.insides.get(site, ()) if at is not None)
    found = (switch_around(at[0].co_filename, line_of(*at)) for at in lines)
    return next(filter(None, found), "")


def _posix(file: str) -> str:
    return file.replace("\\", "/")


def _line(sites: CallSites, site: int) -> tuple[CodeType, int] | None:
    """The innermost of the user's lines, by its code and instruction."""
    steps = sites.all[site].steps
    return (steps[0].code, steps[0].instruction) if steps else None


def _lines(sites: CallSites, cuts: Iterable[int]) -> Iterator[tuple[str, int]]:
    found = (_line(sites, site) for site in cuts)
    return ((at[0].co_filename, line_of(*at)) for at in found if at is not None)
