"""One module under two names, of which one was frozen: `self.teacher = student`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import torch

from autograd_explain.arguments import values_given
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.reaching_definitions import key_of
from autograd_explain.inspect.facts.freezing import frozen_modules
from autograd_explain.inspect.scene import Scene


@dataclass(frozen=True, eq=False)
class SharedModule:
    """`given` is the expression that handed the module on instead of a copy of it; `frozen` and
    `trained` are the two names."""

    given: ExprAt
    frozen: str
    trained: str


def shared_module(scene: Scene, freezer: ExprAt | None) -> SharedModule | None:
    """The place where a module that an optimizer is to train got the name under which it was
    frozen; None where both are not used as two models."""
    if freezer is None:
        return None
    for module in frozen_modules(scene, freezer):
        value = scene.slicer.value(module)
        if isinstance(value, torch.nn.Module) and not _is_trained(scene, value):
            continue
        for maker in scene.slicer.makers(module):
            found = _handed_on(scene, maker.via)
            if found is not None:
                return found
    return None


def _is_trained(scene: Scene, module: torch.nn.Module) -> bool:
    return scene.gradient_tracer.holds(module.parameters())


def _handed_on(scene: Scene, names: tuple[ExprAt, ...]) -> SharedModule | None:
    """The names that the frozen object went through, the freezing line's first."""
    for at in range(1, len(names)):
        given, before = names[at], names[:at]
        name = _name(given.node)
        used = [b for b in before if _is_called(scene, _name(b.node)) and _name(b.node) != name]
        twice = _is_given_twice(scene, given)
        if used and (twice or (_is_assigned(scene, given) and _is_called(scene, name))):
            return SharedModule(given, used[-1].text, given.text)
    return None


def _name(node: ast.AST) -> str:
    """`teacher` of `self.teacher`, `nets['target']` as it is."""
    return str(getattr(node, "attr", getattr(node, "id", ast.unparse(node))))


def _is_called(scene: Scene, name: str) -> bool:
    """Whether the program computes with a model of this name."""
    return any(_name(call.func) == name for _, call in scene.index.nodes(ast.Call))


def _is_assigned(scene: Scene, given: ExprAt) -> bool:
    """`a.teacher = net`"""
    statement = scene.slicer.statement(given)
    plain = isinstance(statement, ast.Assign) and len(statement.targets) == 1
    return plain and getattr(statement, "value", None) is given.node


def _is_given_twice(scene: Scene, given: ExprAt) -> bool:
    """`net` of `Distil(net, net)` and of `{"teacher": net, "student": net}`"""
    parents = scene.slicer.index(given.scope.source).parents
    around = parents.get(given.node)
    if isinstance(around, ast.keyword):
        around = parents.get(around)
    return sum(key_of(n) == given.key for n in _given(around)) > 1


def _given(around: ast.AST | None) -> list[ast.expr]:
    if isinstance(around, ast.Call):
        return values_given(around)
    if isinstance(around, ast.Dict):
        return list(around.values)
    return list(getattr(around, "elts", ()))
