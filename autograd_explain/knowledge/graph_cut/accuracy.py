"""An accuracy used as the objective: the share of `logits.argmax(1) == labels`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from autograd_explain.inspect.dataflow import Cut, CutKind, ExprAt
from autograd_explain.inspect.dataflow.cut_kinds import is_about_shape
from autograd_explain.inspect.dataflow.reaching_definitions import key_of
from autograd_explain.inspect.scene import Scene
from autograd_explain.program import called_name

_PASSES = frozenset("float double mean sum to type".split())
_PROBABILITIES = frozenset("softmax log_softmax Softmax LogSoftmax sigmoid".split())


@dataclass(frozen=True, eq=False)
class Accuracy:
    """`objective` is computed from nothing but which of `scores` are right for `labels`."""

    objective: ExprAt
    scores: str
    labels: str


def accuracy_objective(scene: Scene, root: ExprAt | None, cut: Cut) -> Accuracy | None:
    """The objective that an argmax cut, where it is an accuracy and stands in the same scope."""
    compared = [s for kind, s in cut.later if kind is CutKind.COMPARE]
    if root is None or cut.spot.called != "argmax" or len(compared) != 1:
        return None
    labels, objective = _other_side(scene, compared[0], cut), _maker(scene, root)
    same = objective is not None and objective.scope.body is cut.spot.scope.body
    if labels is None or objective is None or not same or not _over_classes(scene, cut):
        return None
    if not _only_from(scene, objective, compared[0].node):
        return None
    return Accuracy(objective, cut.operand.text, labels.text)


def _over_classes(scene: Scene, cut: Cut) -> bool:
    """Whether the argmax goes over dimension 1 or -1 of named scores that are no probabilities."""
    node = cut.spot.node
    made = scene.slicer.makers(cut.operand)
    if cut.operand.key is None or any(m.called in _PROBABILITIES for m in made):
        return False
    assert isinstance(node, ast.Call)
    given = [*node.args, *(k.value for k in node.keywords if k.arg in ("dim", "axis"))]
    return any(ast.unparse(n) in ("1", "-1") for n in given)


def _other_side(scene: Scene, compared: ExprAt, cut: Cut) -> ExprAt | None:
    node = compared.node
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq):
        return None
    sides = [compared.inside(n) for n in (node.left, *node.comparators)]
    other = [s for s in sides if _maker_node(scene, s) is not cut.spot.node]
    return other[0] if len(sides) == 2 and len(other) == 1 and key_of(other[0].node) else None


def _only_from(scene: Scene, spot: ExprAt, compared: ast.AST) -> bool:
    """Whether a value is the comparison's mean or sum, scaled and shifted by numbers."""
    node = spot.node
    if node is compared:
        return True
    if isinstance(node, ast.UnaryOp):
        return _follows(scene, spot.inside(node.operand), compared)
    if isinstance(node, ast.BinOp):
        values = [n for n in (node.left, node.right) if not _is_number(n)]
        return len(values) == 1 and _follows(scene, spot.inside(values[0]), compared)
    if isinstance(node, ast.Call) and called_name(node) in _PASSES:
        method = node.func.value if isinstance(node.func, ast.Attribute) else None
        inner = node.args[0] if method is None or ast.unparse(method) == "torch" else method
        return _follows(scene, spot.inside(inner), compared)
    return False


def _follows(scene: Scene, spot: ExprAt, compared: ast.AST) -> bool:
    made = _maker(scene, spot)
    return made is not None and _only_from(scene, made, compared)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or is_about_shape(node)


def _maker(scene: Scene, spot: ExprAt) -> ExprAt | None:
    made = scene.slicer.makers(spot)
    return made[0] if len(made) == 1 else None


def _maker_node(scene: Scene, spot: ExprAt) -> ast.AST | None:
    made = _maker(scene, spot)
    return None if made is None else made.node
