"""Losses of a loop of which a backward behind the loop takes the last one only.

Each round computes a loss and binds it to the same name; `loss.backward()` stands behind the loop.
Nothing is raised: the other rounds' graphs are just let go.  The log tells that there were several
rounds, the graph that none but the last is in it, and the text that no round builds on the one
before.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from torch import Tensor

from ...nodes import GraphTraversal
from ...program import Program, called_name
from ..observe.call_sites import CallFrame, CallSites
from ..observe.code_positions import CodePosition, spot_of
from ..observe.event_log import EventLog, Made
from .finding import CandidateFault, Mark, Marks, TimeShare
from .number_into_loss import spread, targets_of

_LOOKS = 2  #: at the graph of one backward's line
_MAX_MADE = 20_000
_MAX_NODES = 20_000
#: What a loop may ask of a loss without using it for more than to be shown.
_SHOWN = frozenset({"item", "detach", "data", "tolist", "isnan", "isfinite", "shape", "numpy"})
_SHOWING = frozenset({"print", "float", "isnan", "isfinite", "append", "update", "format"})


@dataclass(frozen=True, eq=False)
class Look:
    """What was made since the backward before, and the numbers of the nodes that one leads to."""

    backward: Mark
    made: tuple[Made, ...]
    reached: frozenset[int]


class LastRounds:
    """Looks at the graphs of backwards that come after one line has run several times."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.looks: list[Look] = []
        self._times: Counter[int] = Counter()
        self._walks = TimeShare(share=0.01, free=20)
        self._since = 0

    def begin(self) -> None:
        """A cell begins."""
        self.looks.clear()
        self._times.clear()

    def before_backward(self, roots: Iterable[Tensor], mark: Mark) -> None:
        since, self._since = self._since, mark.clock
        if self._times[mark.site] == _LOOKS or not self._walks.allows():
            return
        self._times[mark.site] += 1
        with self._walks:
            recent = takewhile(lambda row: row[3] > since, reversed(self.log.made))
            made = [Made(*row) for row, _ in zip(recent, range(_MAX_MADE), strict=False)]
            if not made or max(Counter(each.site for each in made).values()) == 1:
                return
            first = min(each.first for each in made)
            walk = GraphTraversal((r.grad_fn for r in roots), limit=_MAX_NODES)
            newer = takewhile(lambda reached: reached.sequence >= first, walk)
            numbers = frozenset(reached.sequence for reached in newer)
            if len(numbers) < _MAX_NODES:
                self.looks.append(Look(mark, tuple(reversed(made)), numbers))


def last_round_alone(
    looks: Sequence[Look], step: Mark, sites: CallSites, program: Program
) -> Iterator[CandidateFault]:
    """Where such a loss is all that is trained on by a later `step`; no alarm where the rounds may
    be one computation done again."""
    told = set[int]()
    for look in looks:
        steps = sites.all[look.backward.site].steps
        spot = spot_of(program, steps[0]) if steps else None
        found = None if spot is None or look.backward.site in told else _loop_of(spot)
        if found is None or step.clock < look.backward.clock:
            continue
        rounds = _rounds(found, look, steps[0], sites, program)
        if rounds is not None:
            told.add(look.backward.site)
            yield _fault(found, look, step, rounds)


@dataclass(frozen=True, eq=False)
class _Loop:
    """A loop before a backward whose rounds bind a `name` that is in its root."""

    spot: CodePosition
    node: ast.For
    bound: ast.Assign
    name: str


def _fault(loop: _Loop, look: Look, step: Mark, rounds: list[Mark]) -> CandidateFault:
    marks: Marks = {
        "computed": (rounds[-1],),
        "backward": (look.backward,),
        "step": (step,),
    }
    source = loop.spot.source
    evidence = {
        "name": loop.name,
        "rounds": len(rounds),
        "loop": source.place(loop.node.lineno, None, loop.node),
        "bound": source.place(loop.bound.lineno, None, loop.bound),
        "each": any(called_name(n) == "zero_grad" for n in ast.walk(loop.node)),
        "sum": next(_sums(loop.node, loop.name), ""),
    }
    return CandidateFault("last-round-only", marks, evidence, sure=_differ(loop))


def _loop_of(spot: CodePosition) -> _Loop | None:
    """The loop behind which a backward stands, and the loss of its rounds."""
    statement = spot.statement
    if statement is None or spot.node is None:
        return None
    names = _names(spot.node)
    for before in _before(spot, statement):
        if isinstance(before, ast.For):
            for node in _flat(before.body):
                for name in names & {*targets_of(node)}:
                    if isinstance(node, ast.Assign) and _is_of_one_round(before, node, name):
                        return _Loop(spot, before, node, name)
            if names & _all_targets(before):
                return None
        elif isinstance(before, ast.Assign) and names & {*targets_of(before)}:
            more = _names(before.value) if _only_scales(before.value) else set()
            names = (names - {*targets_of(before)}) | more
        elif names & _all_targets(before):
            return None
    return None


def _before(spot: CodePosition, statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements before one, the last first, out to the loop or function around it."""
    for outer in spot.source.around(statement):
        for block in ("body", "orelse", "finalbody"):
            inside = getattr(outer, block, [])
            if isinstance(inside, list) and statement in inside:
                yield from reversed(inside[: inside.index(statement)])
        if not isinstance(outer, (ast.With, ast.If, ast.Try)):
            return
        statement = outer


def _is_of_one_round(loop: ast.For, bound: ast.Assign, name: str) -> bool:
    """Whether every round binds the name anew, from nothing that an earlier one has left, and
    nothing else in the loop goes on with it."""
    inner = [*ast.walk(loop)]
    ends = (ast.Break, ast.Return, ast.Yield, ast.YieldFrom, ast.Await)
    trains = {"backward", "step", "grad"}
    if any(isinstance(n, ends) or called_name(n) in trains for n in inner) or loop.orelse:
        return False
    assigned = [n for n in inner if isinstance(n, (ast.Assign, ast.AugAssign, ast.AnnAssign))]
    if any(called_name(n.value)[:1].isupper() for n in assigned if n.value is not None):
        return False  # each round may train a model of its own
    others = [n for n in assigned if n is not bound and name in targets_of(n)]
    if name in _names(bound.value) or not all(name in _names(n.value) for n in others if n.value):
        return False
    if any(isinstance(n, ast.AugAssign) or n not in _flat(loop.body) for n in others):
        return False
    if name in spread(assigned, _carried(loop)):
        return False
    reads = (n for n in inner if isinstance(n, ast.Name) and n.id == name)
    parents = {child: n for n in inner for child in ast.iter_child_nodes(n)}
    own: set[ast.stmt] = {bound, *others}
    return all(_only_shows(n, parents, own) for n in reads)


def _flat(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that every round runs, those of `with` blocks included."""
    inner = (_flat(s.body) if isinstance(s, ast.With) else [s] for s in body)
    return [statement for each in inner for statement in each]


def _only_shows(node: ast.Name, parents: dict[ast.AST, ast.AST], own: set[ast.stmt]) -> bool:
    """Whether a name is read only to be shown, to be summed, or to be bound to itself again."""
    if isinstance(node.ctx, ast.Store):
        return True
    at: ast.AST = node
    while at in parents:
        at = parents[at]
        if isinstance(at, ast.Attribute) and at.attr in _SHOWN:
            return True
        if isinstance(at, (ast.FormattedValue, ast.AugAssign, ast.Compare)) or at in own:
            return True
        if isinstance(at, ast.Call) and called_name(at) in _SHOWING:
            return True
        if isinstance(at, ast.stmt):
            return False
    return False


def _carried(loop: ast.For) -> set[str]:
    """The names that a round reads before it binds them: what the round before has left."""
    bound = _names_of(loop.target)
    carried: set[str] = set()
    every = _all_targets(loop)
    for statement in _flat(loop.body):
        read = {n for inner in ast.walk(statement) for n in _read_by(inner)}
        carried |= (read & every) - bound
        bound |= {*targets_of(statement)}
    return carried


def _read_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
        yield ast.unparse(node)
    elif isinstance(node, ast.AugAssign):
        yield ast.unparse(node.target)


def _differ(loop: _Loop) -> bool:
    """Whether each round computes its loss of what the loop gives it, or of a next batch."""
    assigned = [n for n in ast.walk(loop.node) if isinstance(n, (ast.Assign, ast.AugAssign))]
    given = _names_of(loop.node.target)
    for node in assigned:
        if any(called_name(n) == "next" for n in ast.walk(node.value)):
            given |= {*targets_of(node)}
    return loop.name in spread(assigned, given)


def _sums(loop: ast.For, name: str) -> Iterator[str]:
    """The names that the loop adds the loss itself to."""
    for node in _flat(loop.body):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            if isinstance(node.value, ast.Name) and node.value.id == name:
                yield ast.unparse(node.target)


def _only_scales(value: ast.expr) -> bool:
    """Whether an expression is arithmetic with what it reads: `loss / len(batches) + penalty`."""
    calls = (n for n in ast.walk(value) if isinstance(n, ast.Call))
    return all(called_name(n) in ("len", "mean", "sum", "float") for n in calls)


def _names(node: ast.AST | None) -> set[str]:
    """The names and attributes that are read in it."""
    found = () if node is None else ast.walk(node)
    return {ast.unparse(n) for n in found if isinstance(n, (ast.Name, ast.Attribute))}


def _names_of(target: ast.expr) -> set[str]:
    return {ast.unparse(n) for n in ast.walk(target) if isinstance(n, (ast.Name, ast.Attribute))}


def _all_targets(node: ast.AST) -> set[str]:
    return {name for inner in ast.walk(node) for name in targets_of(inner)}


def _rounds(
    loop: _Loop, look: Look, step: CallFrame, sites: CallSites, program: Program
) -> list[Mark] | None:
    """When the rounds' losses were computed; None where fewer than two had a graph, or the backward
    goes through an earlier one."""
    inside = {
        site: _statement_in(loop, sites.all[site].steps, step, program)
        for site in {made.site for made in look.made}
    }
    bound = [made for made in look.made if inside[made.site] is loop.bound]
    if not bound:
        return None
    last = [made for made in bound if made.site == bound[-1].site]
    if len(last) < 2:
        return None
    earlier = (m for m in look.made if inside[m.site] is not None and m.clock <= last[-2].clock)
    if any(number in look.reached for m in earlier for number in range(m.first, m.end)):
        return None
    return [Mark(made.site, made.clock) for made in last]


def _statement_in(
    loop: _Loop, steps: Sequence[CallFrame], step: CallFrame, program: Program
) -> ast.stmt | None:
    """The statement of the loop that a call was made for."""
    for each in steps:
        spot = spot_of(program, each) if each.shares_names(step) else None
        if spot is not None and spot.statement is not None:
            around = (spot.statement, *spot.source.around(spot.statement))
            return spot.statement if loop.node in around else None
    return None
