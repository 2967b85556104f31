"""What the loops around a failing line hand from round to round under names of their own."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from ...model import Place
from ...nodes import GraphTraversal
from ...program import Source, expression_of
from ..dataflow.safe_lookup import in_frame
from ..live.graph import GraphNode
from ..scene import Scene

_SECONDS = 0.5
_MOST_NAMES = 12


@dataclass(frozen=True)
class LoopCarried:
    """Names that a loop reads before it gives them their next value, and the statement behind
    which they have it.  `several`: each is a tuple of tensors."""

    place: Place
    names: tuple[str, ...]
    several: bool = False


def carried_by_loop(scene: Scene, old: Collection[GraphNode]) -> LoopCarried | None:
    """The names by which the innermost loop that does so hands on values whose graph holds one of
    `old`; None where no loop around the failing lines does."""
    nodes = {id(n.node) for n in old}
    frames = zip(reversed(scene.incident.user_frames), reversed(scene.path), strict=False)
    for live, place in frames:
        source = scene.program.source_of(live.code)
        for loop in () if source is None else _around(source, live.line):
            kept: dict[str, tuple[ast.stmt, bool]] = {}
            for name, write in islice(_handed_on(loop, live.line), _MOST_NAMES):
                value = in_frame(expression_of(name), live.frame)
                if _leads_to(value, nodes):
                    kept[name] = write, isinstance(value, tuple)
            if kept and source is not None and len({s for _, s in kept.values()}) == 1:
                last = max(write.lineno for write, _ in kept.values())
                line = place.line if last <= live.line else last + source.offset
                several = any(s for _, s in kept.values())
                return LoopCarried(source.place(line - source.offset), tuple(kept), several)
    return None


def _around(source: Source, line: int) -> list[ast.For | ast.While]:
    """The loops around a line, the innermost first."""
    found = [
        node
        for node in source.nodes
        if isinstance(node, (ast.For, ast.While))
        and node.lineno < line <= (node.end_lineno or node.lineno)
    ]
    return sorted(found, key=lambda loop: -loop.lineno)


def _handed_on(loop: ast.For | ast.While, line: int) -> Iterator[tuple[str, ast.stmt]]:
    """What statements of the loop's own block give a value after the round has read it."""
    first_read: dict[str, int] = {}
    for node in (n for s in loop.body for n in ast.walk(s)):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            name = ast.unparse(node)
            first_read[name] = min(node.lineno, first_read.get(name, node.lineno))
    written: dict[str, ast.stmt] = {}
    for statement in loop.body:
        if isinstance(statement, ast.Assign):
            for target in (leaf for t in statement.targets for leaf in getattr(t, "elts", [t])):
                if isinstance(target, (ast.Name, ast.Attribute)):
                    written.setdefault(ast.unparse(target), statement)
    for name, statement in written.items():
        if first_read.get(name, statement.lineno + 1) <= _last_line(statement):
            yield name, statement


def _last_line(statement: ast.stmt) -> int:
    """Up to where a read is one of the value from before: the statement's own value."""
    return statement.end_lineno or statement.lineno


def _leads_to(value: Any, nodes: set[int]) -> bool:
    members = value if isinstance(value, tuple) else (value,)
    if not members or not all(isinstance(m, torch.Tensor) for m in members):
        return False
    starts = [m.grad_fn for m in members if m.grad_fn is not None]
    return any(id(r.node) in nodes for r in GraphTraversal(starts, seconds=_SECONDS))
