"""Events at one level of the user's program.

Two events may have happened in functions called from the same place, one above or both in a loop
inside a function that the cell calls.  To move one behind the other one needs the statements at the
innermost level where their call chains differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...model import Place
from ..history import TraceEvent
from ..live.graph import Graph, GraphNode
from ..scene import Scene

Path = tuple[Place, ...]


def path_of(moment: TraceEvent) -> Path:
    """The user's lines from the outermost to the one where it happened."""
    return (*moment.chain, moment.place)


def failing_path(scene: Scene) -> Path:
    places = (scene.incident.place_of(f) for f in scene.incident.user_frames)
    return tuple(p for p in places if p is not None)


def at_one_level(paths: Sequence[Path]) -> tuple[Place, ...]:
    """One place for each path: the first at which the paths are not all on the same line."""
    depth = 0
    while all(len(p) > depth + 1 for p in paths) and _same_line([p[depth] for p in paths]):
        depth += 1
    return tuple(p[depth] for p in paths)


def below(path: Path, level: Place) -> tuple[Place, ...]:
    """The line of a path inside what the statement at `level` calls; () where there is none."""
    lines = [(p.cell, p.file, p.line) for p in path]
    at = (level.cell, level.file, level.line)
    return path[lines.index(at) + 1 :][:1] if at in lines else ()


def _same_line(places: Sequence[Place]) -> bool:
    return len({(p.cell, p.file, p.line) for p in places}) == 1


def forward_paths(scene: Scene, node: GraphNode) -> tuple[Path, ...]:
    """The statements that computed the failing root from what `node` made, as far as they are
    known, oldest first."""
    return paths_of(scene, _towards_root(scene.graph, node))


def paths_of(scene: Scene, nodes: Iterable[GraphNode]) -> tuple[Path, ...]:
    """The statements that made these nodes, as far as they are known, oldest first."""
    makers = (scene.history.maker(n) for n in nodes)
    known = sorted((m for m in makers if m is not None), key=lambda m: m.order)
    return tuple(path_of(m) for m in known)


def distinct(places: Iterable[Place]) -> tuple[Place, ...]:
    """One place for each line, in order."""
    return tuple({(p.cell, p.file, p.line): p for p in places}.values())


def _towards_root(graph: Graph, node: GraphNode) -> list[GraphNode]:
    found, frontier = {id(node): node}, [node]
    while frontier:
        for parent in graph.parents(frontier.pop()):
            if id(parent) not in found:
                found[id(parent)] = parent
                frontier.append(parent)
    return list(found.values())
