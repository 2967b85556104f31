"""One object that two calls hand out: the second has it hold its own values, and the loss of the
first reads those."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch

from autograd_explain.inspect.dataflow.safe_lookup import MISSING, in_frame
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.torch_call import gone_back_from
from autograd_explain.inspect.live.names import Names
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Place
from autograd_explain.program import own_nodes

from .evidence import Evidence

_LASTING = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer, type)


@dataclass(frozen=True)
class OneObject:
    """`name` got the object from the call at `first`, `other` from the one at `again`."""

    name: str
    other: str
    first: Place
    again: Place


def one_object(scene: Scene, known: Evidence) -> OneObject | None:
    """The object that holds a value of the old part, and that two calls of the same have given two
    names of a function that failed; one of the losses reads the first."""
    old = {id(node.node) for node in known.part.old}
    for live in reversed(scene.incident.user_frames):
        place = scene.incident.place_of(live)
        source, statement = scene.program.source_at(place), scene.program.statement_at(place)
        if source is None or statement is None or place is None:
            continue
        for pair in _alike(source.function_around(statement) or source.tree):
            first, again = (source.place(s.value.lineno, place.function, s.value) for s in pair)
            one, two = (in_frame(s.targets[0], live.frame) for s in pair)
            held = one is two is not MISSING and not is_a(one, _LASTING) and _holds(one, old)
            made = held and _is_made_at(known, again, *pair)
            if made and _is_read(*pair, _read_by_losses(scene, known)):
                name, other = (ast.unparse(s.targets[0]) for s in pair)
                return OneObject(name, other, first, again)
    return None


def _read_by_losses(scene: Scene, known: Evidence) -> Iterator[ast.Name]:
    first = known.calls.first
    earlier = None if first is None else gone_back_from(scene, first)
    for loss in (*known.roots, *(() if earlier is None else (earlier,))):
        for spot in (loss, *computation(scene, loss)):
            yield from (n for n in ast.walk(spot.node) if isinstance(n, ast.Name))


def _is_made_at(known: Evidence, again: Place, one: ast.Assign, two: ast.Assign) -> bool:
    """Whether the second call made the old values; where that is not known, whether it was asked
    for others."""
    maker = known.part.maker
    if maker is None:
        return ast.unparse(one.value) != ast.unparse(two.value)
    return again.line_id in [place.line_id for place in maker.path]


def _alike(scope: ast.AST) -> Iterator[tuple[ast.Assign, ast.Assign]]:
    """The statements that call the same for two names, of which nothing else gives one a value."""
    nodes = list(own_nodes(scope))
    names = [n for n in nodes if isinstance(n, ast.Name)]
    stored = [n.id for n in names if not isinstance(n.ctx, ast.Load)]
    calls = [n for n in nodes if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call)]
    for one, two in combinations(calls, 2):
        first, second = (ast.unparse(t) for t in (one.targets[0], two.targets[0]))
        if stored.count(first) == stored.count(second) == 1 and _is_alike(one, two):
            yield one, two


def _is_read(one: ast.Assign, two: ast.Assign, read: Iterable[ast.Name]) -> bool:
    """Whether the first name is, behind both calls."""
    name = ast.unparse(one.targets[0])
    return any(n.id == name and n.lineno > two.lineno for n in read)


def _is_alike(one: ast.Assign, two: ast.Assign) -> bool:
    calls = [s.value for s in (one, two) if isinstance(s.value, ast.Call)]
    return len({ast.unparse(c.func) for c in calls}) == 1 and all(c.args for c in calls)


def _holds(value: Any, old: set[int]) -> bool:
    held = (n.tensor for n in Names({"it": value}).tensors)
    return any(not t.is_leaf and id(t.grad_fn) in old for t in held)
