"""A computed tensor that was written straight into a module's table of parameters.

`module._parameters[name] = F.dropout(raw)` passes by the check of `register_parameter`, and
`module.parameters()` then hands the result of an operation to the optimizer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.dataflow.syntax import stored
from autograd_explain.inspect.scene import Scene
from autograd_explain.nodes import GraphTraversal
from autograd_explain.program import called_name

_LARGEST_GRAPH = 2_000


def stored_in_table(scene: Scene, tensor: torch.Tensor) -> ExprAt | None:
    """The one expression whose value the program writes into the table under the tensor's name."""
    keys = {n.rpartition(".")[2] for n in scene.names.of(tensor)}
    found = [s for s, key in _stores(scene) if key is MISSING or key in keys]
    return found[0] if len(found) == 1 else None


def _stores(scene: Scene) -> Iterator[tuple[ExprAt, object]]:
    slicer = scene.slicer
    for source, statement in scene.index.nodes(ast.stmt, naming=("_parameters",)):
        for target, value, path in stored(statement):
            if is_table_item(target) and not path and not makes_parameter(value):
                assert isinstance(target, ast.Subscript)
                spot = slicer.at(source, value)
                yield spot, slicer.value(spot.inside(target.slice))


def is_table_item(node: ast.AST) -> bool:
    """`module._parameters[name]`"""
    table = node.value if isinstance(node, ast.Subscript) else None
    return isinstance(table, ast.Attribute) and table.attr == "_parameters"


def makes_parameter(node: ast.AST) -> bool:
    """`nn.Parameter(…)`, and `None` for a name that is to stay empty."""
    if isinstance(node, ast.Constant):
        return True
    return called_name(node) == "Parameter"


def is_trained_through(tensor: torch.Tensor, given: Iterable[torch.Tensor]) -> bool:
    """Whether every leaf behind a tensor is among those given to the optimizer."""
    held = {id(t) for t in given}
    walk = GraphTraversal([tensor.grad_fn], limit=_LARGEST_GRAPH)
    leaves = list(walk.leaves())
    return walk.complete and bool(leaves) and all(id(v) in held for v in leaves)
