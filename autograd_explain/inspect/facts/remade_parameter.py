"""A parameter made anew from a computed value: `self.fc.weight = nn.Parameter(hyper(z))`.

The new leaf gets the gradients that belong to what it was computed from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ...model import Place
from ...program import called_name, own_nodes
from ..dataflow import ExprAt
from ..scene import Scene
from .silent_evidence import name_of, tensors


@dataclass(frozen=True, eq=False)
class RemadeParameter:
    """`made` is the call of Parameter, `statement` the place of the assignment that holds it;
    `lost` are the parameters behind the value."""

    made: ExprAt
    operand: str
    target: str
    statement: Place
    lost: tuple[torch.Tensor, ...]


def remade_parameter(scene: Scene) -> RemadeParameter | None:
    """The one statement that makes a parameter of the finding out of a computed value, while
    parameters of the same models get no gradient."""
    lost = tuple(p for p in tensors(scene, "dead") if _is_in_model(scene, p))
    missing = [name_of(scene, p) for p in tensors(scene, "parameters")]
    found = {id(s.node): (s, a) for name in missing for s, a in _made(scene, name)}
    if not lost or len(found) != 1:
        return None
    ((made, statement),) = found.values()
    assert isinstance(made.node, ast.Call)
    return RemadeParameter(
        made,
        ast.unparse(made.node.args[0]),
        ast.unparse(statement.targets[0]),
        made.scope.source.place(statement.lineno, made.function, statement),
        lost,
    )


def _is_in_model(scene: Scene, parameter: torch.Tensor) -> bool:
    modules = [v for _, v in scene.names.objects if isinstance(v, torch.nn.Module)]
    return any(p is parameter for m in modules for p in m.parameters())


def _made(scene: Scene, name: str) -> Iterator[tuple[ExprAt, ast.Assign]]:
    """`….first.weight = nn.Parameter(f(x))` for `field.first.weight`, constructors left out."""
    slicer = scene.slicer
    for source, function in scene.index.nodes(ast.FunctionDef, newest_first=True):
        for node in own_nodes(function) if function.name != "__init__" else ():
            if isinstance(node, ast.Assign) and _is_remade(node, name):
                yield ExprAt(slicer.scope_of(source, function), node.value), node


def _is_remade(node: ast.Assign, name: str) -> bool:
    target, value = node.targets[0], node.value
    if len(node.targets) != 1 or not isinstance(target, ast.Attribute):
        return False
    if not isinstance(value, ast.Call) or called_name(value) != "Parameter" or not value.args:
        return False
    computed = any(isinstance(n, (ast.Call, ast.BinOp)) for n in ast.walk(value.args[0]))
    computed = computed or isinstance(value.args[0], ast.Name)
    return computed and _ends_alike(ast.unparse(target), name)


def _ends_alike(target: str, name: str) -> bool:
    """`self.first.weight` and `field.first.weight`; of `self.weight` the last part decides."""
    own, other = target.split("."), name.split(".")
    return own[-1] == other[-1] and (len(own) < 3 or own[-2] == other[-2])
