"""A leaf that the program updates by giving its name a new tensor, round after round.

`adv = adv + step * adv.grad.sign()`, `adv = torch.clamp(adv, 0, 1)`: what the loop differentiates
next is computed from what it differentiated last, so it is no leaf any more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ..dataflow import ExprAt
from ..scene import Scene
from .expressions import computation


@dataclass(frozen=True, eq=False)
class ReplacedLeaf:
    """`flagged`: the program asks for the gradient of the new tensor itself, so that it only has to
    be detached.  `cleared`: it resets the gradient of the new tensor, so that it counts on the old
    one."""

    flagged: bool
    cleared: bool


def replaced_leaf(scene: Scene, maker: ExprAt, shown: ExprAt) -> ReplacedLeaf | None:
    """What is known of such an update; None where it is none.

    `maker` made the new tensor, which the user calls `shown`: its value was computed with the
    gradient of what had this name before, or comes back to what it was computed from and is asked
    for its gradient each time.
    """
    if maker.path or not isinstance(maker.node, ast.expr):
        return None
    chain = [maker, *computation(scene, maker, 60)]
    owners = [owner for spot in chain for owner in _differentiated(spot)]
    flagged = any(_is(scene, owner, maker) for owner in asked_for_gradient(scene))
    updated = any(o.text == shown.text or _is(scene, o, maker) for o in owners)
    if not updated and not (flagged and _comes_back(scene, chain, maker)):
        return None
    cleared = any(_is(scene, owner, maker) for owner in cleared_owners(scene))
    return ReplacedLeaf(flagged, cleared)


def _is(scene: Scene, spot: ExprAt, maker: ExprAt) -> bool:
    """Whether an expression may have the value that `maker` computed."""
    return any(m.node is maker.node for m in scene.slicer.makers(spot))


def _differentiated(spot: ExprAt) -> Iterator[ExprAt]:
    """`x` of the `x.grad` and of the `autograd.grad(y, x)` inside an expression."""
    for node in ast.walk(spot.node):
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            yield spot.inside(node.value)
        if isinstance(node, ast.Call) and not _keeps_graph(node):
            call = spot.inside(node)
            asked = call.argument(1, "inputs") if call.called == "grad" else None
            if asked is not None:
                elements = getattr(asked.node, "elts", None) or [asked.node]
                yield from (spot.inside(e) for e in elements)


def _keeps_graph(call: ast.Call) -> bool:
    """`create_graph=True`: the update itself is to be differentiated."""
    given = (k.value for k in call.keywords if k.arg == "create_graph")
    return any(not (isinstance(v, ast.Constant) and not v.value) for v in given)


def _comes_back(scene: Scene, chain: list[ExprAt], maker: ExprAt) -> bool:
    return any(_is(scene, o, maker) for spot in chain for o in scene.slicer.operands(spot))


def asked_for_gradient(scene: Scene) -> Iterator[ExprAt]:
    """The tensors that the program asks the gradient for: `x.requires_grad_()` and the like."""
    nodes = scene.index.nodes(ast.Attribute, naming=("requires_grad_", "requires_grad"))
    for source, node in nodes:
        assigned = node.attr == "requires_grad" and isinstance(node.ctx, ast.Store)
        if assigned or node.attr == "requires_grad_":
            yield scene.slicer.at(source, node.value)


def cleared_owners(scene: Scene) -> Iterator[ExprAt]:
    """The tensors whose gradient the program resets: `x.grad.zero_()`, `x.grad = None`."""
    for source, node in scene.index.nodes(ast.Attribute, naming=("grad",)):
        around = source.parents.get(node)
        zeroed = isinstance(around, ast.Attribute) and around.attr == "zero_"
        if node.attr == "grad" and (zeroed or isinstance(node.ctx, ast.Store)):
            yield scene.slicer.at(source, node.value)
