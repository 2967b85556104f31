"""What certainly ran before a failure, told from the source: its in-place writes and its calls of
library modules, with what is known of the values.

Nothing is run.  Statements before the failing lines have run, and so have the functions that they
call and the loops in them over what is not empty; a branch may not have.  What stands in a loop
over what is not known is told apart: it ran unless that was empty.  A name of a failing frame
still is what it was at a statement unless it was bound after that.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ...arguments import bound_arguments, parameters, positional_parameters
from ...forward_flow import is_simple, reads
from ...incident import LiveFrame
from ...isolation.type_checks import is_a
from ...model import Place
from ...nodes import is_view
from ...program import Source, blocks, own_nodes
from ...program_index import functions_of
from ..dataflow import Scope, safe_lookup
from ..dataflow.safe_lookup import MISSING, in_frame, is_tensor
from ..live.shapes import shape_of
from ..scene import Scene
from .statements import SourceWrite, base_of, is_inplace_name, write_of

Position = tuple[float, float]
_MAY_NOT_RUN = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.comprehension, ast.match_case)
_LEAVES = (ast.Return, ast.Break, ast.Continue)
_HOLDS_TENSORS = (torch.Tensor, torch.nn.Module, tuple)
_NEVER: Position = (float("inf"), 0)
_DEEPEST = 6
_LONGEST = 2_000  #: statements


@dataclass(frozen=True, eq=False)
class LibraryCall:
    """A call of a module that runs no code of the user's."""

    module: torch.nn.Module
    place: Place
    chain: tuple[Place, ...]


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of a value: the live object, the library call that returned it or what it is
    a part of, and the parts of a tuple.  A view stands for its tensor."""

    live: Any = MISSING
    call: LibraryCall | None = None
    parts: tuple[Known, ...] = ()

    @property
    def is_tensor(self) -> bool:
        """Whether it may be one."""
        return is_tensor(self.live) if self.live is not MISSING else self.call is not None


@dataclass(frozen=True, eq=False)
class RanWrite:
    """An in-place write that ran, for `certain` or unless the loop around it had no round; `target`
    is what it calls the tensor, views of it left out."""

    write: SourceWrite
    target: ast.expr
    value: Known
    place: Place
    chain: tuple[Place, ...]
    certain: bool = True


@dataclass(eq=False)
class _Names:
    """The names of a function, or of a cell's top level, as the statement `at` sees them.

    `live` says what a name is now, `last` where it is bound last: it was the same object behind
    that.  `tracked` is what the statements so far have bound, `taken` what a loop has.
    """

    source: Source
    function: str | None
    live: Callable[[ast.Name], Any]
    last: Mapping[str, Position]
    chain: tuple[Place, ...] = ()
    tracked: dict[str, Known] = field(default_factory=dict)
    taken: dict[str, Known] = field(default_factory=dict)
    results: dict[ast.Call, Known] = field(default_factory=dict)
    at: ast.stmt = field(default_factory=ast.Pass)
    own: bool = False  #: a name that the statement binds is read as what it is after that

    @property
    def place(self) -> Place:
        return self.source.place(self.at.lineno, self.function, self.at)

    def of(self, node: ast.Name) -> Known:
        if node.id in self.taken:
            return self.taken[node.id]
        known = self.tracked.get(node.id, Known())
        until = _end(self.at) if self.own else _start(self.at)
        live = self.live(node) if self.last.get(node.id, (0, 0)) < until else MISSING
        return known if live is MISSING else replace(known, live=live)

    def binds_last(self, name: str) -> bool:
        """Whether the statement is the last that binds a name."""
        return _start(self.at) <= self.last.get(name, _NEVER) < _end(self.at)

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            self.tracked.pop(name, None)
            self.taken.pop(name, None)

    def bind(self, target: ast.expr, known: Known) -> None:
        if isinstance(target, ast.Name):
            self.tracked[target.id] = known
        elif isinstance(target, (ast.Tuple, ast.List)):
            whole = len(known.parts) == len(target.elts)
            parts = known.parts if whole else [Known(call=known.call)] * len(target.elts)
            for inner, part in zip(target.elts, parts, strict=True):
                self.bind(inner, part)


class CertainRun:
    """The writes and the library calls before a failure, in the order in which they ran."""

    def __init__(self, scene: Scene) -> None:
        self.writes: list[RanWrite] = []
        self.calls: list[LibraryCall] = []
        self._scene = scene
        self._steps = 0
        self._certain = True
        for live in scene.incident.user_frames:
            self._frame(live)

    # -- statements --------------------------------------------------------------------------

    def _frame(self, live: LiveFrame) -> None:
        source = self._scene.program.source_of(live.code)
        scope = None if source is None else _scope(source, live)
        if source is None or scope is None:
            return
        function = None if isinstance(scope, ast.Module) else live.function
        last = _last_bound(own_nodes(scope))
        names = _Names(source, function, lambda node: in_frame(node, live.frame), last)
        for statement in _ran_before(scope, live.line):
            self._statement(statement, names)

    def _block(self, statements: list[ast.stmt], names: _Names) -> Known:
        """What a block returns where it certainly does; it is left where it may leave."""
        for statement in statements:
            value = self._statement(statement, names)
            if isinstance(statement, ast.Return):
                return value
            if any(isinstance(n, _LEAVES) for n in ast.walk(statement)):
                break
        return Known()

    def _statement(self, statement: ast.stmt, names: _Names) -> Known:
        """The value that a simple statement computes."""
        names.at, self._steps = statement, self._steps + 1
        if self._steps > _LONGEST:
            return Known()
        if is_simple(statement) and _runs_whole(statement):
            return self._simple(statement, names)
        stored = {n.id for n in _stores(ast.walk(statement))}
        names.forget(stored)
        if isinstance(statement, ast.For):
            self._loop(statement, names)
        elif isinstance(statement, ast.With) and self._is_of_torch(statement, names):
            self._block(statement.body, names)
        names.forget(stored)
        return Known()

    def _simple(self, statement: ast.stmt, names: _Names) -> Known:
        """`x = f(x)` may give the very tensor back that it gets: then `x` was that before, too."""
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        same = targets[0] if len(targets) == 1 and isinstance(targets[0], ast.Name) else None
        value, marks = Known(), (len(self.writes), len(self.calls))
        names.own = isinstance(statement, ast.AugAssign) or (
            same is not None
            and names.binds_last(same.id)
            and reads(statement, frozenset({same.id}))
        )
        if names.own:
            value = self._evaluated(statement, names)
        if same is not None and (not names.own or value.live is not names.live(same)):
            del self.writes[marks[0] :], self.calls[marks[1] :]
            names.own = False
        if not names.own:
            value = self._evaluated(statement, names)
        names.own = False
        if not isinstance(statement, ast.AugAssign):
            names.forget(n.id for n in _stores(ast.walk(statement)))
        for target in targets:
            names.bind(target, value)
        return value

    def _evaluated(self, statement: ast.stmt, names: _Names) -> Known:
        names.results = {}
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                self._value(node, names)
        write = write_of(statement)
        if write is not None:
            self._note(write, names)
        value = getattr(statement, "value", None)
        return Known() if value is None else self._value(value, names)

    def _note(self, write: SourceWrite, names: _Names) -> None:
        known = ((node, self._value(node, names)) for node in _written(write))
        for node, value in [(n, v) for n, v in known if v.is_tensor][:1]:
            target = self._unviewed(node, names)
            ran = RanWrite(write, target, value, names.place, names.chain, self._certain)
            self.writes.append(ran)

    def _loop(self, loop: ast.For, names: _Names) -> None:
        if any(isinstance(n, (ast.Return, ast.Break)) for n in ast.walk(loop)):
            return
        before, bound = names.taken, {n.id for n in _stores(ast.walk(loop))}
        own = {n.id for n in _stores(ast.walk(loop.target))}
        rounds = list(self._elements(loop.iter, loop.target, names))
        certain, calls = self._certain, len(self.calls)
        unknown = not rounds and self._value(loop.iter, names).live is MISSING
        self._certain = certain and not unknown
        for element in rounds or [{}] * unknown:
            names.forget(bound)
            names.taken = {**before, **dict.fromkeys(own, Known()), **element}
            self._block(loop.body, names)
            names.at = loop
        names.taken, self._certain = before, certain
        if unknown:
            del self.calls[calls:]

    def _elements(
        self, over: ast.expr, target: ast.expr, names: _Names
    ) -> Iterator[dict[str, Known]]:
        """What each known round of a loop binds; what a list holds may be new there."""
        known = self._value(over, names)
        if known.live is MISSING and known.call is not None:
            yield {n.id: Known(call=known.call) for n in _stores(ast.walk(target))}
        if is_a(known.live, torch.Tensor):
            rows = shape_of(known.live) or (0,)
            yield from [{n.id: known for n in _stores([target])}] if rows[0] else []
            return
        found = safe_lookup.iterated(over, lambda node: names.of(node).live)
        paths = (n for n in ast.walk(over) if isinstance(n, (ast.Name, ast.Attribute)))
        if any(is_a(self._value(n, names).live, (list, dict)) for n in paths):
            yield from [{}] if found else []
            return
        plain = 0
        for value in found:
            bound = safe_lookup.taken(target, value)
            plain += not any(is_a(v, _HOLDS_TENSORS) for v in bound.values())
            if plain < 2 or any(is_a(v, _HOLDS_TENSORS) for v in bound.values()):
                yield {name: Known(live, known.call) for name, live in bound.items()}

    def _is_of_torch(self, statement: ast.With, names: _Names) -> bool:
        """Whether it is none that might swallow an error of its body."""
        entered = [getattr(i.context_expr, "func", None) for i in statement.items]
        kinds = [self._value(e, names).live for e in entered if e is not None]
        modules = [str(getattr(k, "__module__", "")) for k in kinds if is_a(k, type)]
        return len(modules) == len(entered) and all(m.startswith("torch.") for m in modules)

    # -- values ------------------------------------------------------------------------------

    def _value(self, node: ast.expr, names: _Names) -> Known:
        if isinstance(node, ast.Name):
            return names.of(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, names)
        if isinstance(node, ast.Subscript):
            return self._item(node, names)
        if isinstance(node, ast.Call):
            if node not in names.results:
                names.results[node] = self._called(node, names)
            return names.results[node]
        if isinstance(node, ast.Tuple):
            return Known(parts=tuple(self._value(e, names) for e in node.elts))
        return Known(safe_lookup.evaluate(node, lambda name: names.of(name).live))

    def _attribute(self, node: ast.Attribute, names: _Names) -> Known:
        base = self._value(node.value, names)
        if base.live is MISSING:
            return Known(call=base.call)
        if is_tensor(base.live):
            return base if is_view(node.attr) else Known()
        live = safe_lookup.attribute(base.live, node.attr)
        stays = not is_a(live, (torch.Tensor, tuple)) or self._stays(base.live, node.attr)
        return Known(live, base.call) if stays else Known(call=base.call)

    def _stays(self, owner: object, name: str) -> bool:
        """Whether nothing gives an attribute of an object another value later."""
        if is_a(owner, torch.nn.Module):
            return False
        named = self._scene.index.nodes(ast.Attribute, naming=(name,))
        return not any(n.attr == name and not isinstance(n.ctx, ast.Load) for _, n in named)

    def _item(self, node: ast.Subscript, names: _Names) -> Known:
        base, key = self._value(node.value, names), self._value(node.slice, names).live
        if base.is_tensor and (base.live is not MISSING or type(key) is not str):
            return base if self._is_view(node.slice, names) else Known()
        if base.live is MISSING and type(key) is int and -len(base.parts) <= key < len(base.parts):
            return base.parts[key]
        if is_a(base.live, (tuple, torch.nn.Module)):
            return Known(safe_lookup.item(base.live, key), base.call)
        return Known(call=base.call)

    def _is_view(self, index: ast.expr, names: _Names) -> bool:
        """Whether an index gives a view, as one with a tensor or a list in it does not."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        kinds = (int, type(None), type(Ellipsis))
        return all(
            isinstance(p, ast.Slice) or type(self._value(p, names).live) in kinds for p in parts
        )

    def _called(self, call: ast.Call, names: _Names) -> Known:
        if isinstance(call.func, ast.Attribute) and _keeps_memory(call.func.attr):
            owner = self._value(call.func.value, names)
            if owner.is_tensor:
                return owner
        function = self._value(call.func, names).live
        entered = None if function is MISSING else self._scene.slicer.entry(function)
        if entered is not None:
            return self._function(entered, call, names)
        module = function.__self__ if is_a(function, types.MethodType) else function
        if not is_a(module, torch.nn.Module) or any(map(self._is_users, module.modules())):
            return Known()
        found = LibraryCall(module, names.place, names.chain)
        self.calls.append(found)
        return Known(call=found)

    def _is_users(self, module: torch.nn.Module) -> bool:
        return self._scene.slicer.entry(module) is not None

    def _function(self, entered: Scope, call: ast.Call, names: _Names) -> Known:
        function = entered.body
        if not isinstance(function, ast.FunctionDef) or not _is_plain(function, entered):
            return Known()
        given = bound_arguments(function, call)
        known = {name: self._value(value, names) for name, value in given.items()}
        if entered.receiver is not MISSING:
            known[positional_parameters(function)[0]] = Known(entered.receiver)
        chain = (*names.chain, names.place)
        if len(chain) > _DEEPEST:
            return Known()
        top = self._scene.slicer.top(entered.source).values
        outer = {**top, **entered.values}
        own = (*parameters(function), *(n.id for n in _stores(own_nodes(function))))

        def steady(node: ast.Name) -> Any:
            value = outer.get(node.id, safe_lookup.builtin(node.id))
            return MISSING if is_a(value, (torch.Tensor, tuple, list, dict)) else value

        last = dict.fromkeys(own, _NEVER)
        inner = _Names(entered.source, entered.function, steady, last, chain, known)
        return self._block(function.body, inner)

    def _unviewed(self, node: ast.expr, names: _Names) -> ast.expr:
        """`x` of `x[0]` and of `x.diagonal()`, where that looks into the tensor `x`."""
        while True:
            base = node.func if isinstance(node, ast.Call) else node
            part = isinstance(node, (ast.Call, ast.Subscript))
            inner = getattr(base, "value", None) if part else None
            if not isinstance(inner, ast.expr) or not self._value(inner, names).is_tensor:
                return node
            node = inner


def _scope(source: Source, live: LiveFrame) -> ast.Module | ast.FunctionDef | None:
    """What the frame executes, where its statements run one after the other."""
    if live.function == "<module>":
        return source.tree
    found = functions_of(source.tree, live.code)
    return found[0] if len(found) == 1 and isinstance(found[0], ast.FunctionDef) else None


def _ran_before(scope: ast.AST, line: int) -> Iterator[ast.stmt]:
    """The statements before a line in the blocks around it: they have run, and all of each."""
    for node in (scope, *own_nodes(scope)):
        for block in blocks(node):
            around = [
                i for i, s in enumerate(block) if s.lineno <= line <= (s.end_lineno or s.lineno)
            ]
            yield from (s for i in around[:1] for s in block[:i])


def _runs_whole(statement: ast.stmt) -> bool:
    return not any(isinstance(n, _MAY_NOT_RUN) for n in ast.walk(statement))


def _is_plain(function: ast.FunctionDef, entered: Scope) -> bool:
    """Whether a call runs a function as it is written, and which arguments it gets is known."""
    bound = positional_parameters(function)[:1] in (["self"], ["cls"])
    if function.decorator_list or bound is not (entered.receiver is not MISSING):
        return False
    return not any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own_nodes(function))


def _written(write: SourceWrite) -> list[ast.expr]:
    """What a write may write to: of `x[i] += 1` the tensor `x`, or the item of a list `x`."""
    statement = write.statement
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    items = [t for t in targets if isinstance(t, ast.Subscript)]
    if items:
        return [items[0].value, *items[: isinstance(statement, ast.AugAssign)]]
    functions = (n.func for n in ast.walk(statement) if isinstance(n, ast.Call))
    methods = [f for f in functions if isinstance(f, ast.Attribute) and f.attr == write.op]
    return [next((f.value for f in methods if base_of(f.value) is write.target), write.target)]


def _keeps_memory(method: str) -> bool:
    """Whether what a method of a tensor returns is the tensor or looks into it."""
    name = method.title().replace("_", "")
    return is_inplace_name(method) or is_view(name) or method == "detach"


def _stores(nodes: Iterable[ast.AST]) -> Iterator[ast.Name]:
    return (n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _last_bound(nodes: Iterable[ast.AST]) -> dict[str, Position]:
    found: dict[str, Position] = {}
    for node in _stores(nodes):
        found[node.id] = max(found.get(node.id, (0, 0)), (node.lineno, node.col_offset))
    return found


def _start(statement: ast.stmt) -> Position:
    return statement.lineno, statement.col_offset


def _end(statement: ast.stmt) -> Position:
    return statement.end_lineno or statement.lineno, statement.end_col_offset or 0
