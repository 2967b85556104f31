"""Where a made value is kept under a name, and which operations gave a name its values."""

from __future__ import annotations

import ast

from ...model import Place
from ..history import TraceEvent
from ..live.graph import GraphNode
from ..scene import Scene
from .statements import statement_at


def bound_place(scene: Scene, moment: TraceEvent) -> tuple[Place, ...]:
    """The lines down to the one at which a made value is first kept under a name.

    A function that only returns what it computes leaves that to its caller; so does the line that
    raised, when everything above it only passed the value on.
    """
    path = (*moment.chain, moment.place)
    while len(path) > 1 and _only_returns(statement_at(scene.program, path[-1])):
        path = path[:-1]
    return path


def _only_returns(statement: ast.stmt | None) -> bool:
    shown = statement.value if isinstance(statement, ast.Return) else None
    displays = (ast.Dict, ast.List, ast.Tuple, ast.ListComp, ast.DictComp, ast.Set)
    return shown is not None and not isinstance(shown, displays)


def assigned_names(scene: Scene, place: Place | None) -> tuple[str, ...]:
    """What the statement at a place assigns to, attributes first: they outlive the call."""
    statement = statement_at(scene.program, place)
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            targets.extend(target.elts if isinstance(target, ast.Tuple) else [target])
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        targets.append(statement.target)
    targets.sort(key=lambda t: not isinstance(t, (ast.Attribute, ast.Subscript)))
    return tuple(ast.unparse(t) for t in targets)


class NodesOfName:
    """The graph nodes that gave a name its values, in the function around a place.

    Of a statement with several operations (`loss = crit(net(x))`) the last one.
    """

    def __init__(self, scene: Scene, name: str, near: Place) -> None:
        self._scene = scene
        self._name = name
        self._near = near.cell, near.file, near.function
        self._known: dict[tuple[object, ...], int] = {}

    def __contains__(self, node: GraphNode) -> bool:
        maker = self._scene.history.maker(node)
        depth = -1 if maker is None else self._depth(maker)
        if maker is None or depth < 0:
            return False
        used = (self._scene.history.maker(n) for n in self._scene.graph.parents(node))
        here = _lines(maker)[depth]
        return not any(m is not None and _lines(m)[depth : depth + 1] == (here,) for m in used)

    def _depth(self, maker: TraceEvent) -> int:
        """How deep in the calls the statement stands that gives the name this value, else -1."""
        key = _lines(maker)
        if key not in self._known:
            path = bound_place(self._scene, maker)
            here = (path[-1].cell, path[-1].file, path[-1].function) == self._near
            given = here and self._name in assigned_names(self._scene, path[-1])
            self._known[key] = len(path) - 1 if given else -1
        return self._known[key]


def _lines(moment: TraceEvent) -> tuple[tuple[object, ...], ...]:
    return tuple((p.cell, p.file, p.line) for p in (*moment.chain, moment.place))
