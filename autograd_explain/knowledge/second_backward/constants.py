"""Values of before a loop which the loop has no need to train: it trains what is behind them by
values of its own, as where a rollout has stored log-probabilities and values with their graph."""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.live.graph import GraphNode
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Place
from autograd_explain.program import Source

from .freed_part import FreedPart
from .made_outside import fixed_in, loops

#: A name, or what a dict has under a string: both can be given another tensor.
_ASSIGNABLE = re.compile(r"(\w+)(\['\w+'\])?")


@dataclass(frozen=True)
class Constants:
    """`names` are all that the loop at `before` reads of the old part; `again` says that it runs a
    call of what made that anew: the old values are there to be compared with."""

    names: tuple[str, ...]
    before: Place
    again: bool


def constants(scene: Scene, part: FreedPart) -> Constants | None:
    """None where one of the values has no name that the loop only reads, or where a parameter
    behind them gets no other gradient."""
    used = scene.graph.used_outside(part.old)
    if part.whole or not used or not _leaves(scene, used) <= _leaves_of_new(scene, part.old):
        return None
    for live, source, loop in sorted(loops(scene), key=lambda found: found[2].lineno):
        if read := _names(scene, used, fixed_in(live, loop)):
            before = source.place(loop.lineno, live.code.co_name, loop)
            return Constants(tuple(read), before, _runs_again(scene, part, source, loop))
    return None


def _names(scene: Scene, used: Sequence[GraphNode], fixed: set[str]) -> list[str]:
    """A name for each of the values that is, or begins with, one of these; [] where one has
    none."""
    found: dict[int, str] = {}
    for named in scene.names.tensors:
        node = None if named.tensor.is_leaf else scene.graph.find(named.tensor.grad_fn)
        known = _ASSIGNABLE.fullmatch(named.name)
        if node is not None and known is not None and known[1] in fixed:
            found.setdefault(id(node), named.name)
    names = [found.get(id(node), "") for node in used]
    return list(dict.fromkeys(names)) if all(names) else []


def _leaves(scene: Scene, nodes: Iterable[GraphNode]) -> set[int]:
    return {id(n.variable) for n in scene.graph.below(nodes) if n.variable is not None}


def _leaves_of_new(scene: Scene, old: Sequence[GraphNode]) -> set[int]:
    """The leaves that the failing graph leads to past its old part."""
    known = {id(n) for n in old}
    pending = [n for start in scene.graph.starts if (n := scene.graph.find(start)) is not None]
    seen, leaves = {id(n) for n in pending}, set[int]()
    while pending:
        node = pending.pop()
        if node.variable is not None:
            leaves.add(id(node.variable))
        below = (scene.graph.find(child) for child in node.children)
        fresh = [n for n in below if n is not None and id(n) not in seen and id(n) not in known]
        seen |= {id(n) for n in fresh}
        pending += fresh
    return leaves


def _runs_again(scene: Scene, part: FreedPart, source: Source, loop: ast.For | ast.While) -> bool:
    """Whether a call that computed the old values stands in the loop as well, `policy(obs)`, or
    another call of the module that did: `critic(states)`, after `critic(next_states)`."""
    places = {place for moment in part.made for place in moment.path}
    old = [call for place in places for call in _called_at(scene, place, loop)]
    here = [(t, scene.slicer.at(source, n)) for s in loop.body for t, n in _calls(s)]
    if any(_is_of_model(scene, call) for text, call in here if text in dict(old)):
        return True
    trained = _leaves(scene, part.old)
    made = [m for _, call in old for m in _modules(scene, call)]
    made = [m for m in made if any(id(p) in trained for p in torch.nn.Module.parameters(m))]
    return any(m is other for _, call in here for m in _modules(scene, call) for other in made)


def _called_at(
    scene: Scene, place: Place, loop: ast.For | ast.While
) -> Iterator[tuple[str, ExprAt]]:
    """The calls of a statement, where that is none of the loop's."""
    source, statement = scene.program.source_at(place), scene.program.statement_at(place)
    if source is not None and statement is not None and statement not in loop.body:
        yield from ((text, scene.slicer.at(source, node)) for text, node in _calls(statement))


def _modules(scene: Scene, call: ExprAt) -> list[torch.nn.Module]:
    owners = [scene.slicer.value(o) for o in (call.callable, call.receiver) if o is not None]
    return [owner for owner in owners if is_a(owner, torch.nn.Module)]


def _calls(node: ast.AST) -> list[tuple[str, ast.Call]]:
    found = (n for n in ast.walk(node) if isinstance(n, ast.Call) and n.args)
    return [(ast.unparse(n), n) for n in found]


def _is_of_model(scene: Scene, call: ExprAt) -> bool:
    """Whether a call runs a module, a method of one, or a function of the program's: what torch
    computes (`F.softplus(rho)`) may stand in two places and mean nothing by it."""
    value = None if call.callable is None else scene.slicer.value(call.callable)
    if isinstance(value, types.FunctionType) and scene.program.source_of(value.__code__):
        return True
    return bool(_modules(scene, call))
