"""What a library's object computed of a tensor that the program's constructor made it with: every
round goes back through that."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import torch

from autograd_explain.arguments import values_given
from autograd_explain.inspect.dataflow.safe_lookup import MISSING, evaluate
from autograd_explain.inspect.facts.binding import binding_of
from autograd_explain.inspect.live.graph import GraphNode
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Certainty, Place
from autograd_explain.program import called_name, is_of_package

from .freed_part import FreedPart
from .made_outside import is_in_graph, made_by_constructor, reads_of


def given_once(scene: Scene, part: FreedPart) -> FreedPart:
    """The part as what `self.rotate = Rotation(self.width)` in a constructor has made, where that
    is so: the object has nothing else to train and keeps no numbers, so that another one made with
    the same does the same."""
    modules = [(n, m) for n, m in scene.names.held_modules if is_of_package(type(m))]
    for name, module in [] if part.whole else sorted(modules, key=lambda pair: len(pair[0])):
        kept = _kept(scene, name)
        made = made_by_constructor(scene, name) if _is_freed(scene, kept) else None
        given = set[int]() if made is None else _given(scene, name, module, made.place)
        if made is None or not _is_all(scene, module, kept, given):
            continue
        path = () if part.maker is None else part.maker.path
        known = made.place.line_id in [place.line_id for place in path]
        if path and not known and scene.certainty is Certainty.OBSERVED:
            continue
        maker, binding = part.maker if known else made, binding_of(scene.program, made)
        return replace(part, maker=maker, binding=binding, read_by=reads_of(scene, name))
    return part


def _kept(scene: Scene, name: str) -> tuple[GraphNode, ...]:
    """The nodes of what an object of this name keeps of the failing graph, and those below."""
    held = (n.tensor for n in scene.names.tensors if n.name.startswith(f"{name}."))
    nodes = [scene.graph.find(t.grad_fn) for t in held if is_in_graph(scene, t)]
    return scene.graph.below(n for n in nodes if n is not None)


def _is_freed(scene: Scene, kept: tuple[GraphNode, ...]) -> bool:
    """Whether an earlier backward went through that: one goes back from the newest node to the
    oldest, so that the oldest that is freed was so before."""
    freed = [n for n in scene.graph.inner if n.freed_slots]
    return bool(freed) and freed[-1] in kept


def _is_all(
    scene: Scene, module: torch.nn.Module, kept: tuple[GraphNode, ...], given: set[int]
) -> bool:
    leaves = {id(n.variable) for n in kept if n.variable is not None}
    own = [p for p in module.parameters() if id(p) not in given]
    numbers = [b for b in module.buffers() if b.grad_fn is None]
    return bool(leaves) and leaves <= given and not own and not numbers


def _given(scene: Scene, name: str, module: torch.nn.Module, at: Place) -> set[int]:
    """The tensors that the statement which makes the object hands to it, or computes of for it."""
    holder = scene.names.holder(name)
    call = getattr(scene.program.statement_at(at), "value", None)
    if not isinstance(call, ast.Call) or called_name(call) != type(module).__name__:
        return set()

    def named(path: ast.Name) -> Any:
        return holder if path.id == "self" else MISSING

    arguments = values_given(call)
    values = (evaluate(n, named) for a in arguments for n in ast.walk(a))
    return {id(v) for v in values if is_a(v, torch.Tensor)}
