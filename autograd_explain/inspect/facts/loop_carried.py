"""What the loops around a failing line hand from round to round under names of their own."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any

import torch

from ...model import Place
from ...nodes import GraphTraversal
from ...program import expression_of, own_nodes
from ..dataflow.safe_lookup import in_frame
from ..live.graph import GraphNode
from ..scene import Scene
from .failing_loops import loops_around

_SECONDS = 0.5
_MOST_NAMES = 12


class StateKind(Enum):
    """What a carried state is."""

    TENSOR = "tensor"
    TUPLE = "tuple"
    LIST = "list"
    TENSORS = "tensors"  #: a list without anything else
    TUPLES = "tuples"  #: a list of tuples of tensors
    DICT = "dict"
    UNKNOWN = ""

    @classmethod
    def of(cls, value: object) -> StateKind:
        """That of a tensor, of a tuple, list or dictionary of such, or of a list of tuples."""
        if type(value) is list:
            return cls.TUPLES if any(isinstance(v, tuple) for v in value) else cls.TENSORS
        if type(value) is dict:
            return cls.DICT
        return cls.TUPLE if isinstance(value, tuple) else cls.TENSOR


@dataclass(frozen=True)
class LoopCarried:
    """Names that a loop reads before it gives them their next value, and the statement behind
    which they have it.  `given` is the one that gives the first its value, `behind` whether all are
    given theirs behind the failing line; `kind`: what each of them is."""

    place: Place
    names: tuple[str, ...]
    kind: StateKind = StateKind.TENSOR
    given: Place | None = None
    behind: bool = False


def carried_by_loop(scene: Scene, old: Collection[GraphNode]) -> LoopCarried | None:
    """The names by which the innermost loop that does so hands on values whose graph holds one of
    `old`; None where no loop around the failing lines does."""
    nodes = {id(n.node) for n in old}
    for live in reversed(scene.incident.user_frames):
        source = scene.program.source_of(live.code)
        around = () if source is None else loops_around(source, live.line)
        for loop in sorted(around, key=lambda loop: -loop.lineno):
            kept: dict[str, StateKind] = {}
            writes: list[ast.stmt] = []
            gives: list[ast.stmt] = []
            for name, give, write in islice(handed_on(loop), _MOST_NAMES):
                value = in_frame(expression_of(name), live.frame)
                if _leads_to(value, nodes):
                    kept[name] = StateKind.of(value)
                    writes.append(write)
                    gives.append(give)
            if source is not None and len(kinds := set(kept.values())) == 1:
                last = max(live.line, *(write.lineno for write in writes))
                at = scene.incident.place_of(live)
                function = None if at is None else at.function
                given = source.place(gives[0].lineno, function, gives[0])
                behind = all(give.lineno > live.line for give in gives)
                return LoopCarried(source.place(last), tuple(kept), kinds.pop(), given, behind)
    return None


def handed_on(loop: ast.For | ast.While) -> Iterator[tuple[str, ast.stmt, ast.stmt]]:
    """What statements of the loop's own block, or of blocks in it, give a value after the round has
    read it, with the statement and that of the own block."""
    first_read: dict[str, int] = {}
    for node in (n for s in loop.body for n in ast.walk(s)):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            name = ast.unparse(node)
            first_read[name] = min(node.lineno, first_read.get(name, node.lineno))
    written: dict[str, tuple[ast.Assign, ast.stmt]] = {}
    for statement in loop.body:
        for inner in (n for n in (statement, *own_nodes(statement)) if isinstance(n, ast.Assign)):
            for target in (leaf for t in inner.targets for leaf in getattr(t, "elts", [t])):
                if isinstance(target, (ast.Name, ast.Attribute)):
                    written.setdefault(ast.unparse(target), (inner, statement))
    for name, (inner, statement) in written.items():
        # What the statement's own value reads is the value from before, too.
        last = inner.end_lineno or inner.lineno
        if first_read.get(name, last + 1) <= last:
            yield name, inner, statement


def _leads_to(value: Any, nodes: set[int]) -> bool:
    members = _members(value)
    if not members or not all(isinstance(m, torch.Tensor) for m in members):
        return False
    starts = [m.grad_fn for m in members if m.grad_fn is not None]
    return any(id(r.node) in nodes for r in GraphTraversal(starts, seconds=_SECONDS))


def _members(value: Any) -> tuple[Any, ...]:
    """What a state is made of; of a list all have to be of one kind."""
    if isinstance(value, tuple):
        return value
    if type(value) is list and value and all(isinstance(v, tuple) for v in value):
        return tuple(m for v in value for m in v)
    if type(value) is list:
        return tuple(value)
    return tuple(value.values()) if type(value) is dict else (value,)
