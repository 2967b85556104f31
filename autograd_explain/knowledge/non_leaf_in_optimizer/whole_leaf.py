"""A part of a parameter that nothing but the optimizer's call reads: a slice, a view."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from autograd_explain.forward_flow import contains
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.non_leaf import NonLeaf
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place

_VIEWS = frozenset("view reshape narrow select squeeze unsqueeze t transpose flatten".split())


@dataclass(frozen=True)
class WholeLeaf:
    """`code` names the parameter where the expression at `place` gives the optimizer a part."""

    place: Place
    code: str


def whole_leaf(scene: Scene, found: NonLeaf) -> WholeLeaf | None:
    """What to give the optimizer instead; None where the part is used for itself as well."""
    maker, call = found.maker, scene.surfaced
    whole = None if maker is None else _whole(maker)
    if maker is None or whole is None or call is None or found.leaf is None:
        return None
    if scene.slicer.value(whole) is not found.leaf:
        return None
    spot = maker if contains(call.node, maker.node) else found.shown
    if spot is None or not contains(call.node, spot.node):
        return None
    if spot is not maker and _reads(scene, spot) != 1:
        return None
    around = scene.slicer.index(spot.scope.source).parents.get(spot.node)
    if isinstance(around, (ast.ListComp, ast.GeneratorExp)) and around.elt is spot.node:
        return WholeLeaf(scene.slicer.place(spot.inside(around)), f"[{whole.text}]")
    return WholeLeaf(scene.slicer.place(spot), whole.text)


def _whole(maker: ExprAt) -> ExprAt | None:
    """`w` of `w[2:]`, `w.view(-1)[0]`."""
    node: ast.AST = maker.node
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in _VIEWS:
                return None
            node = node.func.value
        else:
            break
    path = isinstance(node, (ast.Name, ast.Attribute)) and node is not maker.node
    return maker.inside(node) if path and isinstance(node, ast.expr) else None


def _reads(scene: Scene, spot: ExprAt) -> int:
    """How often the program reads what has this name."""
    text = ast.unparse(spot.node)
    kind = type(spot.node)
    nodes = (n for _, n in scene.index.nodes(kind) if isinstance(getattr(n, "ctx", None), ast.Load))
    return sum(ast.unparse(n) == text for n in nodes)
