"""The value before a cut, under a name that the place of use can see."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from autograd_explain.inspect.dataflow import Cut, ExprAt
from autograd_explain.inspect.scene import Scene


@dataclass(frozen=True, eq=False)
class Instead:
    """`text` at the place of `use` is the value that still carries gradient."""

    use: ExprAt
    text: str


def uncut_value(scene: Scene, cut: Cut) -> Instead | None:
    """`out["prob"]` instead of `out["mask"]`, where one function returned both; the operand
    itself, where the value is used in the scope that cut it."""
    for use in reversed(cut.trail):
        for text in _siblings(scene, use, cut.operand):
            return Instead(use, text)
    for use in cut.trail:
        same_scope = use.scope.body is cut.operand.scope.body
        if same_scope and cut.operand.key is not None:
            return Instead(use, cut.operand.text)
    return None


def _siblings(scene: Scene, use: ExprAt, operand: ExprAt) -> Iterator[str]:
    node = use.node
    if isinstance(node, ast.Subscript):
        yield from _other_keys(scene, use.inside(node.value), operand)
    elif isinstance(node, ast.Attribute):
        yield from _other_fields(scene, use.inside(node.value), operand)
    elif isinstance(node, ast.Name):
        yield from _other_targets(scene, use, node.id, operand)


def _other_keys(scene: Scene, base: ExprAt, operand: ExprAt) -> Iterator[str]:
    for maker in scene.slicer.makers(base):
        if isinstance(maker.node, ast.Dict):
            for key, value in zip(maker.node.keys, maker.node.values, strict=True):
                if isinstance(key, ast.Constant) and _same(scene, maker.inside(value), operand):
                    yield f"{base.text}[{_quoted(scene, key, maker)}]"
        elif isinstance(maker.node, (ast.Tuple, ast.List)):
            for number, value in enumerate(maker.node.elts):
                if _same(scene, maker.inside(value), operand):
                    yield f"{base.text}[{number}]"


def _quoted(scene: Scene, key: ast.Constant, maker: ExprAt) -> str:
    """The key as the user quoted it."""
    return maker.scope.source.segment(key) or repr(key.value)


def _other_fields(scene: Scene, base: ExprAt, operand: ExprAt) -> Iterator[str]:
    for maker in scene.slicer.makers(base):
        if isinstance(maker.node, ast.Call):
            for keyword in maker.node.keywords:
                if keyword.arg and _same(scene, maker.inside(keyword.value), operand):
                    yield f"{base.text}.{keyword.arg}"


def _other_targets(scene: Scene, use: ExprAt, name: str, operand: ExprAt) -> Iterator[str]:
    """`mask, prob = split(x)`: prob."""
    slicer = scene.slicer
    for scope, binding in slicer.bindings(use, name):
        statement = binding.statement
        if not (isinstance(statement, ast.Assign) and binding.value is not None and binding.path):
            continue
        for target in statement.targets:
            for number, element in enumerate(getattr(target, "elts", ())):
                other = ExprAt(scope, binding.value, (number,))
                if isinstance(element, ast.Name) and element.id != name:
                    if element.id != "_" and _same(scene, other, operand):
                        yield element.id


def _same(scene: Scene, one: ExprAt, other: ExprAt) -> bool:
    """Whether two expressions are made by the same computation."""
    slicer = scene.slicer
    left = {id(m.node) for m in slicer.makers(one)}
    right = {id(m.node) for m in slicer.makers(other)}
    return bool(left) and left == right
