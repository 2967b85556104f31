"""An object that hands values with their graph from round to round, somewhere in it."""

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import torch

from ...incident import LiveFrame
from ...isolation.type_checks import is_a, table_of
from ...model import Place
from ...nodes import GraphTraversal
from ...program import Source, called_name, expression_of, is_library
from ..dataflow.safe_lookup import in_frame
from ..live.graph import GraphNode
from ..scene import Scene
from .failing_loops import failing_loops, loops_around
from .held_code import detaching
from .held_tensors import Held, Way, held_tensors

_SECONDS = 1.0
_MOST_NAMES = 24
_SHOWN = 4
_Region: TypeAlias = ast.For | ast.While | ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
_Chain: TypeAlias = tuple[Held, ...]


@dataclass(frozen=True)
class HeldState:
    """`names` are the values by the ways to them, then the object; `reader` is the statement of a
    round that works with the object, `place` the one behind which `code` takes the graph off what
    it keeps.  `tensors` are these values, `paths` the ways to them."""

    names: tuple[str, ...]
    reader: Place
    place: Place
    code: str
    tensors: tuple[torch.Tensor, ...]
    paths: tuple[str, ...]


def held_state(scene: Scene, old: Collection[GraphNode]) -> HeldState | None:
    """What the failing round was handed, and hands on, in an object whose values lead to nodes of
    earlier rounds; None where no object of the failing lines does, or the code that cuts it cannot
    be written."""
    reached = _Reached({id(n.node) for n in old})
    for live in reversed(scene.incident.user_frames):
        source = scene.program.source_of(live.code)
        region = None if source is None else _region(source, live)
        if source is None or region is None:
            continue
        found = [
            (name, part)
            for name in _handed_in(region)
            if (part := _carrying(scene, in_frame(expression_of(name), live.frame), reached))
        ]
        for name, part in sorted(found, key=lambda pair: _depth(pair[1])):
            state = _state(_Round(source, live, region), name, part, reached)
            if state is not None:
                return state
    return None


def goes_through_rounds(scene: Scene) -> bool:
    """Whether the failing graph goes through the same operation on a parameter twice, and no other
    backward stands in the loop around the failing line: for where it is not known what made it."""
    loop = failing_loops(scene).innermost
    nodes = () if loop is None else ast.walk(loop.node)
    alone = sum(called_name(n) == "backward" for n in nodes) == 1
    return alone and is_used_again(scene)


def is_used_again(scene: Scene) -> bool:
    """Whether the failing graph goes through the same operation on a parameter twice."""
    leaves = (n for n in scene.graph.nodes if n.variable is not None)
    users = ([p.name for p in scene.graph.parents(leaf)] for leaf in leaves)
    return any(len(names) > len(set(names)) for names in users)


class _Reached:
    """Whether tensors lead to some nodes, asked within a time."""

    def __init__(self, nodes: Collection[int]) -> None:
        self._nodes = frozenset(nodes)
        self._stop = time.monotonic() + _SECONDS

    def __call__(self, tensor: torch.Tensor) -> bool:
        left = self._stop - time.monotonic()
        walk = GraphTraversal([tensor.grad_fn], seconds=max(left, 0.0))
        return any(id(r.node) in self._nodes for r in walk)

    def grew(self, tensor: torch.Tensor) -> bool:
        """Whether it leads there and is none of them: it was there before, and went on."""
        return id(tensor.grad_fn) not in self._nodes and self(tensor)


# -- the object -------------------------------------------------------------------------


def _carrying(scene: Scene, value: Any, reached: _Reached) -> Held | None:
    """What of an object leads to the nodes, with all that its owners keep beside that."""
    flat = is_a(value, tuple) and all(is_a(v, torch.Tensor) for v in tuple.__iter__(value))
    held = None if flat or is_a(value, torch.Tensor) else held_tensors(value)
    if held is None:
        return None
    owners: dict[tuple[object, ...], bool] = {}
    chains = [c for c in held.chains() if _is_read(scene, c)]
    for chain in chains:
        owner = _owner(chain)
        owners[owner] = owners.get(owner, False) or reached(chain[-1].value)
    wanted = {id(c[-1]) for c in chains if owners[_owner(c)]}
    return held.only(lambda chain: id(chain[-1]) in wanted)


def _owner(chain: _Chain) -> tuple[object, ...]:
    """The way to the object that has the tensor, or its container, as an attribute; the places in
    containers left open."""
    steps = [p.key if p.way is Way.ATTRIBUTE else p.way for p in chain[1:]]
    last = max((i for i, p in enumerate(chain) if p.way is Way.ATTRIBUTE), default=1)
    return tuple(steps[: last - 1])


def _is_read(scene: Scene, chain: _Chain) -> bool:
    """Whether the program, or a library, reads the attribute that leads to the tensor."""
    pairs = [(a, b) for a, b in pairwise(chain) if b.way is Way.ATTRIBUTE]
    if not pairs:
        return True
    owner, part = pairs[-1]
    module = str(type(owner.value).__module__)
    file = table_of(sys.modules.get(module)).get("__file__")
    if module != "__main__" and isinstance(file, str) and is_library(file):
        return True
    nodes = scene.index.nodes(ast.Attribute)
    return any(n.attr == part.key and isinstance(n.ctx, ast.Load) for _, n in nodes)


def _depth(held: Held) -> int:
    return min((len(chain) for chain in held.chains()), default=0)


# -- the round --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Round:
    """The code that runs again and again, and where it stands now."""

    source: Source
    live: LiveFrame
    region: _Region

    @property
    def block(self) -> list[ast.stmt]:
        return self.region.body

    def place(self, statement: ast.stmt) -> Place:
        name = self.live.code.co_name
        function = None if name.startswith(("<module>", "<cell line:")) else name
        return self.source.place(statement.lineno, function, statement)


def _region(source: Source, live: LiveFrame) -> _Region | None:
    """The innermost loop around a line, else its function, else the cell."""
    loop = max(loops_around(source, live.line), key=lambda n: n.lineno, default=None)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    inside = [n for n in source.nodes if isinstance(n, functions) and n.name == live.code.co_name]
    around = (n for n in inside if n.lineno <= live.line <= (n.end_lineno or n.lineno))
    return loop or max(around, key=lambda n: n.lineno, default=None) or source.tree


def _handed_in(region: _Region) -> Iterator[str]:
    """The names that a round reads before it gives them a value of its own."""
    read: dict[str, int] = {}
    target = ast.walk(region.target) if isinstance(region, ast.For) else ()
    bound = {n.id: 0 for n in target if isinstance(n, ast.Name)}
    for statement in region.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                read[node.id] = min(node.lineno, read.get(node.id, node.lineno))
        for inner in (n for n in ast.walk(statement) if isinstance(n, ast.stmt)):
            for name in _given(inner):
                bound.setdefault(name, inner.end_lineno or inner.lineno)
    worked_with = {*bound, *(n for s in region.body for n in _worked_with(s)), "self"}
    names = [n for n, line in read.items() if line <= bound.get(n, line) and n in worked_with]
    yield from names[:_MOST_NAMES]


def _worked_with(statement: ast.stmt) -> Iterator[str]:
    """The names of what a statement may change: an item or attribute is set, it is called, or a
    method of it or of a part, or it is given to a call."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield from _head(node)
    for call in _calls(statement):
        yield from _head(call.func)
        for given in (*call.args, *(k.value for k in call.keywords)):
            inner = given.value if isinstance(given, ast.Starred) else given
            if isinstance(inner, ast.Name):
                yield inner.id


def _head(node: ast.expr) -> Iterator[str]:
    """`a` of `a.b[0].c`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _given(statement: ast.stmt) -> Iterator[str]:
    targets: list[ast.expr] = list(getattr(statement, "targets", ()))
    if isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For)):
        targets.append(statement.target)
    if isinstance(statement, ast.With):
        targets += [i.optional_vars for i in statement.items if i.optional_vars is not None]
    for target in targets:
        yield from (ast.unparse(leaf) for leaf in getattr(target, "elts", [target]))


def _state(here: _Round, name: str, held: Held, reached: _Reached) -> HeldState | None:
    frame = here.live.frame
    code = detaching(held, name, {*frame.f_locals, *frame.f_globals}, reached.grew)
    if not code:
        return None
    found = [(name + path, tensor) for path, tensor in held.tensors()]
    first = [path for path, tensor in found if reached(tensor)][:_SHOWN]
    return HeldState(
        names=tuple(dict.fromkeys((*first, name))),
        reader=_reader(here, name),
        place=_behind(here, name, [path for path, _ in found]),
        code=code,
        tensors=tuple(tensor for _, tensor in found),
        paths=tuple(path for path, _ in found),
    )


def _reader(here: _Round, name: str) -> Place:
    """The first statement that calls the object or something with it, else that reads it."""
    inner = [n for s in here.block for n in ast.walk(s) if isinstance(n, ast.stmt)]
    simple = [n for n in inner if not getattr(n, "body", None)]
    reading = [n for n in simple if _reads(n, name)]
    calling = (n for n in reading if any(_reads(c, name) for c in _calls(n)))
    statement = next(calling, None) or next(iter(reading), here.block[0])
    return here.place(statement)


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    return (n for n in ast.walk(statement) if isinstance(n, ast.Call))


def _reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def _behind(here: _Round, name: str, paths: list[str]) -> Place:
    """The failing statement, or what comes after it in the round and goes backward too, or gives
    the object a new value."""
    line = here.live.line
    failing = here.source.statement_at(line)
    later = [s for s in here.block if s.lineno > line]
    again = [s for s in later if _goes_back(s) or _binds_again(s, name, paths)]
    if again or failing is None:
        return here.place(again[-1] if again else here.block[-1])
    return here.place(failing)


def _goes_back(statement: ast.stmt) -> bool:
    return any(called_name(call) == "backward" for call in _calls(statement))


def _binds_again(statement: ast.stmt, name: str, paths: list[str]) -> bool:
    inner = (n for n in ast.walk(statement) if isinstance(n, ast.stmt))
    given = {text for n in inner for text in _given(n)} - {""}
    return any(text == name or any(_is_in(path, text) for path in paths) for text in given)


def _is_in(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))
