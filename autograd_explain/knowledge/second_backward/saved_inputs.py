"""Which inputs the operations of a freed graph had saved, as far as torch's schemas tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import torch

from autograd_explain.inspect.live.graph import Graph, GraphNode, freed_slots

#: Nodes that hand their input's memory on: what a later one saved is that memory.
_ALIASING = frozenset({
    "TBackward0", "TransposeBackward0", "PermuteBackward0", "ViewBackward0", "UnsqueezeBackward0",
    "UnsafeViewBackward0", "ReshapeAliasBackward0", "ExpandBackward0", "SqueezeBackward1",
})  # fmt: skip


def leaves_below(nodes: Iterable[GraphNode]) -> Iterator[torch.Tensor]:
    """The leaves that a closed part of a graph hands gradient to."""
    for node in nodes:
        for child in node.children:
            leaf = getattr(child, "variable", None)
            if isinstance(leaf, torch.Tensor):
                yield leaf


def saved_leaves(graph: Graph, nodes: Iterable[GraphNode]) -> Iterator[torch.Tensor]:
    """The leaves whose values a freed part of the graph had saved, themselves or a view of them.

    Only where the name of the saved slot is that of the operation's argument; what is missing
    here may have been saved all the same.
    """
    for node in nodes:
        slots = set(freed_slots(node))
        edges = node.node.next_functions
        names = _arguments(node.name, len(edges)) if slots else ()
        for name, (child, _) in zip(names, edges, strict=False):
            leaf = _leaf(graph, child) if name in slots else None
            if leaf is not None:
                yield leaf


def _leaf(graph: Graph, child: Any) -> torch.Tensor | None:
    node = None if child is None else graph.find(child)
    while node is not None and node.name in _ALIASING and node.children:
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
