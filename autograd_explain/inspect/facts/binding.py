"""Where a made value is kept under a name, and which operations gave a name its values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...model import LineId, Place
from ...program import Program
from ..dataflow.syntax import attributes_in, declares
from ..history import TraceEvent
from ..live.graph import GraphNode
from ..scene import Scene
from .call_levels import Path

#: An attribute that a line of a library assigns.
_KEPT = re.compile(r"^(self\.\w+) = ")


@dataclass(frozen=True, eq=False)
class Binding:
    """The statement at which a made value is first kept under a name.

    `path` are the lines down to it, outermost first.  `inside` is the line of a library that
    computed it on the way: then it need not be what the statement gives a name.
    """

    path: Path
    statement: ast.stmt | None
    inside: Place | None = None

    @property
    def place(self) -> Place:
        return self.path[-1]

    @property
    def names(self) -> tuple[str, ...]:
        """What it assigns to, attributes first: they outlive the call."""
        targets: list[ast.expr] = []
        if self.inside is not None:
            return tuple(_KEPT.findall(self.inside.source))
        if isinstance(self.statement, ast.Assign):
            for target in self.statement.targets:
                targets.extend(target.elts if isinstance(target, ast.Tuple) else [target])
        elif isinstance(self.statement, (ast.AugAssign, ast.AnnAssign)):
            targets.append(self.statement.target)
        targets.sort(key=lambda t: not isinstance(t, (ast.Attribute, ast.Subscript)))
        return tuple(ast.unparse(t) for t in targets)


def binding_of(program: Program, moment: TraceEvent) -> Binding:
    """Where what a moment made is first kept.

    A function that only returns what it computes leaves that to its caller; so does the line that
    raised, when everything above it only passed the value on.
    """
    path = moment.path
    while len(path) > 1 and _only_returns(program.statement_at(path[-1])):
        path = path[:-1]
    statement = program.statement_at(path[-1])
    return Binding(path, statement, moment.inside)


def _only_returns(statement: ast.stmt | None) -> bool:
    shown = statement.value if isinstance(statement, ast.Return) else None
    displays = (ast.Dict, ast.List, ast.Tuple, ast.ListComp, ast.DictComp, ast.Set)
    return shown is not None and not isinstance(shown, displays)


def carried_name(scene: Scene, maker: TraceEvent | None, reader: TraceEvent | None) -> str:
    """What the making statement assigns and the using one reads: `state` of an LSTM's pair."""
    if maker is None or reader is None:
        return ""
    read = {o.replace(" ", "") for o in reader.operands}
    kept = binding_of(scene.program, maker)
    for name in (n for n in kept.names if n.replace(" ", "") in read):
        if _is_gone(scene, kept.place, name):
            continue
        given = NodesOfName(scene, name, kept.place).orders()
        if not any(maker.order < order < reader.order for order in given):  # given no other value
            return name
    return _updated(scene, reader)


def _is_gone(scene: Scene, place: Place, name: str) -> bool:
    """Whether it is a name of a call that has ended, which keeps nothing."""
    source = scene.program.source_at(place)
    function = None if source is None else source.function_at(place)
    if function is None or not name.isidentifier():
        return False
    alive = place.function_id in {p.function_id for p in scene.path}
    return not alive and not declares(function, name, ast.Global, ast.Nonlocal)


def _updated(scene: Scene, reader: TraceEvent) -> str:
    """`self.k` of `self.k = torch.cat([self.k, k])`: an attribute made of what it was."""
    kept = binding_of(scene.program, reader)
    value = getattr(kept.statement, "value", None)
    read = attributes_in(value) if value else ()
    return next((name for name in kept.names if "." in name and name in read), "")


class NodesOfName:
    """The graph nodes that gave a name its values, in the function around a place.

    Of a statement with several operations (`loss = crit(net(x))`) the last one.
    """

    def __init__(self, scene: Scene, name: str, near: Place) -> None:
        self._scene = scene
        self._name = name
        self._near = near.function_id
        self._known: dict[tuple[LineId, ...], int] = {}

    def __contains__(self, node: GraphNode) -> bool:
        maker = self._scene.history.maker(node)
        depth = -1 if maker is None else self._depth(maker)
        if maker is None or depth < 0:
            return False
        used = (self._scene.history.maker(n) for n in self._scene.graph.parents(node))
        here = _lines(maker)[depth]
        return not any(m is not None and _lines(m)[depth : depth + 1] == (here,) for m in used)

    def orders(self) -> Iterator[int]:
        """When the name got its values."""
        made = ((n, self._scene.history.maker(n)) for n in self._scene.graph.nodes)
        return (m.order for n, m in made if m is not None and n in self)

    def _depth(self, maker: TraceEvent) -> int:
        """How deep in the calls the statement stands that gives the name this value, else -1."""
        key = _lines(maker)
        if key not in self._known:
            found = binding_of(self._scene.program, maker)
            here = found.place.function_id == self._near
            given = here and self._name in found.names
            self._known[key] = len(found.path) - 1 if given else -1
        return self._known[key]


def _lines(moment: TraceEvent) -> tuple[LineId, ...]:
    return tuple(p.line_id for p in moment.path)
