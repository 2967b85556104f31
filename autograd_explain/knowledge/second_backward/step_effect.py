"""What the optimizers' steps after a backward did to the part of the graph that it freed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.live.graph import Graph, GraphNode
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.nodes import is_view

from .freed_part import FreedPart


@dataclass(frozen=True)
class Step:
    """An optimizer's step after the earlier backward: whether it writes what the freed part goes
    through (None where that is not known), and whether that part had saved such a value."""

    moment: TraceEvent
    writes: bool | None
    spoils: bool


def effect_of(scene: Scene, part: FreedPart, moment: TraceEvent, call: ExprAt | None) -> Step:
    """What is known of a step, from the live optimizer that its call names."""
    held = held_by(scene, call)
    if held is None:
        return Step(moment, None, False)
    writes = any(id(leaf) in held for leaf in leaves_below(part.old))
    spoils = writes and any(id(p) in held for p in _saved_leaves(scene.graph, part.old))
    return Step(moment, writes, spoils)


def held_by(scene: Scene, call: ExprAt | None) -> set[int] | None:
    """The tensors, by identity, that the optimizer of a call `optimizer.step()` holds; None where
    that is not a live optimizer."""
    owner = call and call.receiver
    optimizer = None if owner is None else scene.slicer.value(owner)
    return params_of(optimizer) if is_a(optimizer, torch.optim.Optimizer) else None


def params_of(owner: Any) -> set[int]:
    """The tensors, by identity, of an optimizer or a module; none of anything else."""
    if is_a(owner, torch.nn.Module):
        return {id(p) for p in owner.parameters()}
    groups = owner.param_groups if is_a(owner, torch.optim.Optimizer) else ()
    return {id(p) for group in groups for p in group["params"]}


def leaves_below(nodes: Iterable[GraphNode]) -> Iterator[torch.Tensor]:
    """The leaves that a closed part of a graph hands gradient to."""
    for node in nodes:
        for child in node.children:
            leaf = getattr(child, "variable", None)
            if isinstance(leaf, torch.Tensor):
                yield leaf


def _saved_leaves(graph: Graph, nodes: Iterable[GraphNode]) -> Iterator[torch.Tensor]:
    """The leaves whose values a freed part of the graph had saved, themselves or a view of them.

    Only where the name of the saved slot is that of the operation's argument; what is missing
    here may have been saved all the same.
    """
    for node in nodes:
        slots = set(node.freed_slots)
        edges = node.node.next_functions
        names = _arguments(node.name, len(edges)) if slots else ()
        for name, (child, _) in zip(names, edges, strict=False):
            leaf = _leaf(graph, child) if name in slots else None
            if leaf is not None:
                yield leaf


def _leaf(graph: Graph, child: Any) -> torch.Tensor | None:
    node = None if child is None else graph.find(child)
    while node is not None and is_view(node.name) and node.children:
        node = graph.find(node.children[0])
    return None if node is None else node.variable


@cache
def _arguments(node_name: str, count: int) -> tuple[str, ...]:
    """The tensor arguments of the operation behind `AddmmBackward0`: self, mat1, mat2; () where
    not exactly one of its overloads has so many."""
    stem = re.sub(r"Backward\d*$", "", node_name)
    name = re.sub(r"(?<!^)(?<!\d)(?=[A-Z])", "_", stem).lower()
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    found = {
        tuple(a.name for a in s.arguments if "Tensor" in str(a.type) and not a.is_out)
        for s in schemas
        if s.overload_name != "out"
    }
    fitting = [names for names in found if len(names) == count]
    return fitting[0] if len(fitting) == 1 else ()
