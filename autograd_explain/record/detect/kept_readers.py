"""Whether a value that was written in place was read by the second name that it had.

Whoever reads it by the name that was written wants what was written.  That one value is read both
ways, or that a container holds it more than once, says that something else was to be kept.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ...arguments import values_given
from ...inspect.dataflow.syntax import PUTS, container_of
from ...model import Place
from ...program import Program
from ..observe.call_sites import CallFrame, CallSites
from ..observe.code_positions import CodePosition, operands_of, spot_of
from .finding import CandidateFault, Mark, Marks
from .kept_values import Holder, KeptValue, Reader

_PATHS = (ast.Name, ast.Attribute, ast.Subscript)
#: They give the entries of what they are given.
_GIVING = frozenset({"zip", "enumerate", "reversed", "list", "tuple", "iter", "sorted"})
_PUTTING = PUTS | {"setdefault"}
_TAKING = frozenset({"pop", "popleft", "get", "values", "items"})


@dataclass(frozen=True, eq=False)
class _Level:
    """One of the user's frames at a write: the `names` by which the writing expression reaches the
    tensor there, those that its statement gives the `result`, and what of the `names` the write
    reaches through a call whose value is something else."""

    spot: CodePosition
    step: CallFrame
    names: frozenset[str]
    result: frozenset[str]
    handed: frozenset[str]


def read_by_second_name(
    values: Sequence[KeptValue], sites: CallSites, program: Program
) -> Iterator[CandidateFault]:
    """The values that were, those under one path in one function together."""
    found: dict[object, CandidateFault] = {}
    for value in values:
        fault = _Reading(value, sites, program).fault()
        if fault is not None:
            known = found.setdefault(fault[0], fault[1])
            sites_told = {mark.site for mark in known.marks["changed"]}
            if value.writes[0].site not in sites_told:
                known.marks["changed"] += fault[1].marks["changed"]
    yield from found.values()


class _Reading:
    """What the text says about one value."""

    def __init__(self, value: KeptValue, sites: CallSites, program: Program) -> None:
        self._value = value
        self._sites = sites
        self._program = program
        steps = sites.all[value.writes[0].site].steps
        spots = [spot_of(program, step) for step in steps]
        self._levels = [
            None if spot is None else self._level(number, spot, step)
            for number, (spot, step) in enumerate(zip(spots, steps, strict=True))
        ]

    def _level(self, number: int, spot: CodePosition, step: CallFrame) -> _Level:
        held = {h.path for h in self._value.holders if h.level == number}
        names = frozenset(held & _paths(_operands(spot.node)))
        result = frozenset(_targets(spot))
        statement = spot.statement
        for_effect = statement is None or isinstance(statement, (ast.Expr, ast.AugAssign))
        apart = frozenset[str]() if for_effect else names - result
        return _Level(spot, step, names, result, apart)

    def fault(self) -> tuple[object, CandidateFault] | None:
        """What is wrong, and by what it is told from others."""
        value = self._value
        for holder in value.holders:
            level = self._levels[holder.level]
            if level is None or value.backward is None:
                continue
            own = holder.path in level.names
            if own and (holder.times or holder.path not in level.handed):
                continue
            kept, others = self._split(holder, level)
            if kept and self._is_meant_otherwise(holder, level, kept, bool(others)):
                told = self._told(holder, level, kept[0].mark, given=own)
                return (holder.path, level.step.code, level.spot.node if own else None), told
        return None

    def _gives_another(self, level: _Level) -> bool:
        """Whether the written tensor was read within the call that wrote it, which then gives what
        was computed of it."""
        readers = (self._sites.all[r.mark.site].steps for r in self._value.readers)
        return any(level.step in steps for steps in readers)

    def _is_meant_otherwise(
        self, holder: Holder, level: _Level, kept: list[Reader], others: bool
    ) -> bool:
        value = self._value
        sites = Counter(reader.mark.site for reader in kept for _ in range(reader.times))
        if max(sites.values()) > 1 and (holder.times > 1 or _may_be_kept_again(level, holder)):
            return True  # several entries, where each was to be another value
        if value.buffer or not others:
            return False
        if not holder.times:
            return value.rounds == 1  # else a running value, whose last state is meant
        # Kept once more after the write, it may be that entry which is read; who goes through all
        # entries and meets the value once has met the one that was kept before.
        once = max(sites.values()) == 1 and all(self._goes_through(r, holder) for r in kept)
        later = _kept_again(level, holder.path) and not once
        return not later and not level.names & _taken_from(level.spot, holder.path)

    def _split(self, holder: Holder, level: _Level) -> tuple[list[Reader], list[Reader]]:
        """The readers by a holder's path, and those by the names that were written."""
        kept, others = [], []
        for reader in self._value.readers:
            by = self._by(reader, holder, level)
            if by.kept:
                kept.append(reader)
            if by.own:
                others.append(reader)
        return kept, others

    def _by(self, reader: Reader, holder: Holder, level: _Level) -> _By:
        for step in self._sites.all[reader.mark.site].steps:
            if step.shares_names(level.step):
                return self._in_function(spot_of(self._program, step), reader, holder, level)
        return self._in_caller(reader, holder)

    def _in_function(
        self, spot: CodePosition | None, reader: Reader, holder: Holder, level: _Level
    ) -> _By:
        operands = [] if spot is None else _operands(spot.node)
        writing = level.spot.node
        if spot is None or spot.node is writing:
            return _By(False, spot is not None)  # within the call that wrote
        own = writing in operands and not self._gives_another(level)
        read = _paths(operands) - _bound_between(level.spot, spot)
        written = {*level.names, *level.result} - {holder.path}
        kept = bool(read & ({holder.path, *_taken_from(spot, holder.path)} - written))
        own = own or bool(read & written)
        if kept and own and reader.times == 1:
            return _By(False, False)  # one of the two
        return _By(kept, own)

    def _in_caller(self, reader: Reader, holder: Holder) -> _By:
        """Of a reader in another function: by what the one that wrote returns, or by an attribute
        of the same name."""
        inner, *outer = self._levels[holder.level : holder.level + 2]
        attribute = holder.path.rpartition(".")
        paths = {holder.path} | (_taken_from(inner.spot, holder.path) if inner else set())
        for step in self._sites.all[reader.mark.site].steps:
            spot = spot_of(self._program, step)
            operands = [] if spot is None else _operands(spot.node)
            read = _paths(operands)
            calls = inner and outer and outer[0] and step.shares_names(outer[0].step)
            if spot is not None and calls and inner and outer[0]:
                back = _returned(inner, outer[0], paths)
                taken = {name for path in back.kept for name in _taken_from(spot, path)}
                if read & {*back.kept, *taken} or (back.whole and outer[0].spot.node in operands):
                    return _By(True, False)
                if read & back.others:
                    return _By(False, True)
            if attribute[1] and any(path.endswith(f".{attribute[2]}") for path in read):
                return _By(True, False)
        return _By(False, False)

    def _goes_through(self, reader: Reader, holder: Holder) -> bool:
        """Whether a reader reads all that a container holds, as far as its text shows it."""
        inner, *outer = self._levels[holder.level : holder.level + 2]
        for step in self._sites.all[reader.mark.site].steps:
            spot, paths = spot_of(self._program, step), {holder.path}
            operands = [] if spot is None else _operands(spot.node)
            if inner and outer and outer[0] and step.shares_names(outer[0].step):
                back = _returned(inner, outer[0], paths)
                paths |= back.kept
                if back.whole and outer[0].spot.node in operands:
                    return True
            given = {ast.unparse(operand) for operand in operands}
            if spot is not None and given & (paths | _entries(spot, paths)):
                return True
        return False

    def _told(self, holder: Holder, level: _Level, used: Mark, *, given: bool) -> CandidateFault:
        value = self._value
        assert value.backward is not None
        first = value.writes[0]
        marks: Marks = {
            "changed": (Mark(first.site, first.clock, made=False),),
            "used": (used,),
            "backward": (value.backward,),
        }
        places = [] if given else [*_kept_at(level, holder.path)]
        if given:
            places = [(level.spot.place(whole=False), holder.path)]
        evidence = {
            "way": "given" if given or not places else "held",
            "tensor": value.of,
            "kept": holder.path,
            "written": min(level.names, default=""),
            "copied": tuple(places),
        }
        return CandidateFault("kept-output-overwritten", marks, evidence)


@dataclass(frozen=True)
class _By:
    """Whether a reader reads by the second name, and whether by the written one."""

    kept: bool
    own: bool


@dataclass
class _Returned:
    """What the caller calls what is under a path in the function that it called, `kept`, and the
    rest that it gets; `whole`: the call itself gives what is under the path."""

    kept: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    whole: bool = False


def _operands(node: ast.AST | None) -> list[ast.expr]:
    """What an operation is given as it is, not computed first; entries of a display each."""
    given = operands_of(node)
    if isinstance(node, ast.Call):
        given = values_given(node)
        given += [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return [part for each in given for part in _parts(each)]


def _parts(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, (ast.List, ast.Tuple)):
        inner = node.elts
    elif isinstance(node, ast.Dict):
        inner = node.values
    elif isinstance(node, (ast.GeneratorExp, ast.ListComp)):
        inner = [node.elt, *(g.iter for g in node.generators)]
    elif isinstance(node, ast.IfExp):
        inner = [node.body, node.orelse]
    elif isinstance(node, ast.Starred):
        inner = [node.value]
    elif isinstance(node, ast.Call) and _is_giving(node):
        inner = node.args
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield node
        inner = [node.func.value] if node.func.attr in _TAKING else []
    else:
        yield node
        return
    for each in inner:
        yield from _parts(each)


def _is_giving(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in _GIVING


def _paths(operands: Iterable[ast.expr]) -> set[str]:
    """Their paths as text, with what these are parts of: `taps`, `taps["h"]`."""
    found = set()
    for node in operands:
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            found.add(ast.unparse(node))
            node = node.value
        if isinstance(node, ast.Name):
            found.add(node.id)
    return found


def _targets(spot: CodePosition) -> Iterator[str]:
    statement = spot.statement
    if isinstance(statement, ast.Assign) and statement.value is spot.node:
        yield from (ast.unparse(t) for t in statement.targets)


def _bound_between(write: CodePosition, read: CodePosition) -> set[str]:
    """The names that got another value on the lines between a write and a reader."""
    if read.source is not write.source or write.statement is None or read.statement is None:
        return set()
    first = write.statement.end_lineno or write.statement.lineno
    return _bound_in(read, first, read.statement.lineno)


def _bound_in(spot: CodePosition, first: int, last: int) -> set[str]:
    """The names that get a value on the lines between two, in a function."""
    nodes = (n for n in ast.walk(spot.scope) if isinstance(n, ast.Assign))
    targets = (t for n in nodes if first < n.lineno < last for t in n.targets)
    return {name for target in targets for name in _names(target)}


def _taken_from(spot: CodePosition, path: str) -> set[str]:
    """The names that the function around gives to entries of a container, or to the container."""
    names = {path}
    given = [*_given(spot.scope)]
    while more := {t for value, t in given if _paths(_parts(value)) & names} - names:
        names |= more
    return names - {path}


def _entries(spot: CodePosition, paths: set[str]) -> set[str]:
    """The names that a loop over all of what a container holds gives to each."""
    loops = (n for n in ast.walk(spot.scope) if isinstance(n, (ast.For, ast.comprehension)))
    over = (n for n in loops if paths & {ast.unparse(part) for part in _parts(n.iter)})
    return {name for loop in over for name in _names(loop.target)}


def _given(body: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    for node in ast.walk(body):
        if isinstance(node, (ast.For, ast.comprehension)):
            yield from ((node.iter, name) for name in _names(node.target))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from ((node.value, name) for name in _names(target))


def _names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _names(element)
    else:
        yield ast.unparse(target)


def _returned(inner: _Level, outer: _Level, paths: set[str]) -> _Returned:
    statement, body = outer.spot.statement, inner.spot.scope
    called = isinstance(statement, ast.Assign) and statement.value is outer.spot.node
    targets = statement.targets[:1] if isinstance(statement, ast.Assign) and called else []
    names = [ast.unparse(e) for t in targets for e in getattr(t, "elts", [])]
    found = _Returned()
    for node in ast.walk(body):
        value = node.value if isinstance(node, ast.Return) else None
        if isinstance(value, ast.Tuple) and len(value.elts) == len(names):
            for element, name in zip(value.elts, names, strict=True):
                given = bool(paths & _paths(_parts(element)))
                (found.kept if given else found.others).add(name)
        elif value is not None and paths & _paths(_parts(value)):
            found.whole = True
            found.kept.update(ast.unparse(t) for t in targets)
    return found


def _may_be_kept_again(level: _Level, holder: Holder) -> bool:
    """Whether the function puts the written name into a container in a loop, or at two places."""
    source = level.spot.source
    puts = [node for node, _ in _puts(level, holder.path, level.names)] if holder.times else []
    loops = (n for put in puts for n in source.around(put))
    return len(puts) > 1 or any(isinstance(n, (ast.For, ast.While)) for n in loops)


def _puts(level: _Level, path: str, names: Iterable[str]) -> Iterator[tuple[ast.AST, ast.expr]]:
    """What the function puts under a path by one of these names, each with what puts it."""
    given = {*names}
    for node in ast.walk(level.spot.scope):
        yield from ((node, kept) for kept in put_there(node, path) if ast.unparse(kept) in given)


def _kept_again(level: _Level, path: str) -> bool:
    """Whether the function keeps what the write gives under a path, behind the write."""
    line, names = level.spot.line, level.names | level.result
    later = (kept for _, kept in _puts(level, path, names) if kept.lineno > line)
    return any(ast.unparse(k) not in _bound_in(level.spot, line, k.lineno) for k in later)


def _kept_at(level: _Level, path: str) -> Iterator[tuple[Place, str]]:
    """The expressions in the function by which it kept the tensor under a path, or gave what is
    there the name that was written, with their texts."""
    body, source = level.spot.scope, level.spot.source
    name = getattr(body, "name", None)
    for node in ast.walk(body):
        put = [kept for kept in put_there(node, path) if ast.unparse(kept) in level.names]
        taken = (kept for own in level.names for kept in put_there(node, own))
        for kept in put or [kept for kept in taken if ast.unparse(kept) == path]:
            yield source.place(kept.lineno, name, kept), ast.unparse(kept)


def put_there(node: ast.AST, path: str) -> list[ast.expr]:
    """What a statement puts there: `path.append(x)`, `path = x`, `path = [x]`, `path[k] = x`,
    `path = [x for …]`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        puts = node.func.attr in _PUTTING and ast.unparse(node.func.value) == path
        return node.args[-1:] if puts else []
    if not isinstance(node, ast.Assign):
        return []
    if path not in {ast.unparse(container_of(t)) for t in node.targets}:
        return []
    if isinstance(node.value, ast.ListComp):
        return [node.value.elt]
    if isinstance(node.value, ast.DictComp):
        return [node.value.value]
    held = getattr(node.value, "elts", None) or getattr(node.value, "values", None)
    return list(held) if isinstance(held, list) else [node.value]
