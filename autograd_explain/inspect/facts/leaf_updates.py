"""A leaf whose name its update took: `self.w = self.w - lr * self.w.grad`.

Computed under no_grad, or detached, the new tensor does not require grad; else it is no leaf.
Either way the next backward fills no `.grad` of it, or finds no graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from ...program import Source, called_name
from ..dataflow import ExprAt
from ..dataflow.cut_kinds import makes_leaf
from ..dataflow.syntax import container_of, taken_apart
from ..scene import Scene
from .expressions import computation
from .replaced_leaf import asked_for_gradient, cleared_owners, replaced_leaf

_READ = (ast.Subscript, ast.Attribute)


@dataclass(frozen=True, eq=False)
class LeafUpdate:
    """The assignment `statement` gave `target` what `value` computed; `cleared` where the program
    resets the gradient of the new tensor, so that it counts on the old one."""

    statement: ast.Assign
    target: ExprAt
    value: ExprAt
    origins: frozenset[int]  #: the nodes by which the tensor is known again
    cleared: bool


def leaf_updates(scene: Scene, root: ExprAt) -> tuple[LeafUpdate, ...]:
    """The updates that left no leaf of what `root` is, or was computed from; first those that
    reach it, then those that stand beside them."""
    updates = list(_updates(scene))
    if not updates:
        return ()
    behind = [*scene.slicer.makers(root), *computation(scene, root)]
    known = {id(s.node) for s in behind}
    lost = [u for u in updates if _is_no_leaf(scene, u) and _began_as_leaf(scene, u, updates)]
    reached = [u for u in lost if known & u.origins] or _read_by_name(scene, lost, behind)
    bodies = {id(u.target.scope.body) for u in reached}
    beside = [u for u in lost if u not in reached and id(u.target.scope.body) in bodies]
    return (*reached, *beside)


def _read_by_name(
    scene: Scene, lost: list[LeafUpdate], behind: Sequence[ExprAt]
) -> list[LeafUpdate]:
    """The updates of items, `params[name]` in a function that the program calls, of which one is
    read by its live name where the root was computed: `params["w"]`."""
    read = {ast.unparse(n) for s in behind for n in ast.walk(s.node) if isinstance(n, _READ)}
    items = [u for u in lost if isinstance(u.target.node, ast.Subscript)]
    found = [u for u in items if read.intersection(name for name, _ in _held(scene, u))]
    return [u for u in found if any(scene.index.calls(getattr(u.target.scope.body, "name", "")))]


def _updates(scene: Scene) -> Iterator[LeafUpdate]:
    for source, node in scene.index.nodes(ast.Assign):
        for target, value in _pairs(node):
            found = _update(scene, source, node, target, value)
            if found is not None:
                yield found


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """What a statement with one target gives to what."""
    return [] if len(node.targets) > 1 else taken_apart(node.targets[0], node.value)


def _may_update(scene: Scene, source: Source, target: ast.expr, value: ast.expr) -> bool:
    """Whether the target is read where its value is computed, or an item is set in a loop; the
    dataflow is asked for a name alone, as it reads the whole cell."""
    if isinstance(target, ast.Subscript):
        return any(isinstance(n, (ast.BinOp, ast.Call)) for n in ast.walk(value))
    read: list[ast.AST] = [value]
    if isinstance(value, ast.Name):
        read = [m.node for m in scene.slicer.makers(scene.slicer.at(source, value))]
    text = ast.unparse(target)
    return any(
        isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) == text
        for node in read
        for n in ast.walk(node)
    )


def _update(
    scene: Scene, source: Source, node: ast.Assign, target: ast.expr, value: ast.expr
) -> LeafUpdate | None:
    if not _may_update(scene, source, target, value):
        return None
    whole, shown = scene.slicer.at(source, value), scene.slicer.at(source, target)
    if isinstance(value, ast.ListComp):  # `[p - lr * p.grad for p in params]`
        whole, shown = whole.inside(value.elt), whole.inside(value.generators[0].target)
    if (element := _element(source, node, target)) is not None:
        shown = scene.slicer.at(source, element)
    for maker in scene.slicer.makers(whole):
        replaced = replaced_leaf(scene, maker, shown)
        if replaced is not None and not replaced.flagged:
            origins = _origins(scene, whole, of_item=isinstance(target, ast.Subscript))
            cleared = replaced.cleared or _clears(scene, origins)
            return LeafUpdate(node, scene.slicer.at(source, target), whole, origins, cleared)
    return None


def _element(source: Source, node: ast.Assign, target: ast.expr) -> ast.expr | None:
    """`p` for `params[k]` in a loop `for k, p in params.items()`, or over `enumerate(params)`."""
    for loop in source.around(node):
        if not isinstance(loop, ast.For) or not isinstance(target, ast.Subscript):
            continue
        pair: list[ast.expr] = getattr(loop.target, "elts", [])
        through = loop.iter
        if not isinstance(through, ast.Call) or len(pair) != 2:
            continue
        owner = getattr(through.func, "value", None)
        over = owner if called_name(through) == "items" else next(iter(through.args), None)
        if called_name(through) not in ("items", "enumerate") or over is None:
            continue
        parts = (over, target.value), (pair[0], target.slice)
        if all(ast.unparse(a) == ast.unparse(b) for a, b in parts):
            return pair[1]
    return None


def _origins(scene: Scene, value: ExprAt, *, of_item: bool) -> frozenset[int]:
    """The new tensor's expression; of an item also the constructor of the leaf that it was computed
    from: by that one is known again that a function puts into its argument."""
    makers = scene.slicer.makers(value)
    behind = computation(scene, value, 40) if of_item else ()
    leaves = [s for s in behind if makes_leaf(s.node)]
    return frozenset(id(s.node) for s in (value, *makers, *leaves))


def _clears(scene: Scene, origins: frozenset[int]) -> bool:
    """Whether the program resets the gradient of one of these."""
    slicer = scene.slicer
    return any(id(m.node) in origins for o in cleared_owners(scene) for m in slicer.makers(o))


def _is_no_leaf(scene: Scene, update: LeafUpdate) -> bool:
    """Whether the live tensors of the target's name say that the update has run."""
    held = [t for _, t in _held(scene, update)]
    return bool(held) and not any(t.requires_grad and t.is_leaf for t in held)


def names_of(scene: Scene, update: LeafUpdate) -> tuple[str, ...]:
    """What the user calls the new tensors, live names first."""
    names = [*(name for name, _ in _held(scene, update)), update.target.text]
    return tuple(dict.fromkeys(names))


def _held(scene: Scene, update: LeafUpdate) -> list[tuple[str, torch.Tensor]]:
    """The live tensors that the target may stand for; of a list that is rebuilt, its items."""
    node = _target(update)
    listed = isinstance(update.statement.value, ast.ListComp)
    pairs = [(n.name, n.tensor) for n in scene.names.tensors]
    found = [(n, t) for n, t in pairs if _may_be(_base(n) if listed else n, node)]
    if isinstance(node, ast.Subscript):  # under its own name before any other list's
        container = ast.unparse(node.value)
        return [(n, t) for n, t in found if _base(n) == container] or found
    return found


def _target(update: LeafUpdate) -> ast.expr:
    assert isinstance(update.target.node, ast.expr)
    return update.target.node


def _base(name: str) -> str:
    return name.partition("[")[0]


def _may_be(name: str, target: ast.expr) -> bool:
    """`model.w` for `self.w`, `params[0]` for `ps[i]`."""
    path, bracket = _base(name), "[" in name
    if isinstance(target, ast.Subscript):
        return bracket and (isinstance(target.value, ast.Name) or _may_be(path, target.value))
    if isinstance(target, ast.Attribute):
        return path.endswith(f".{target.attr}")
    return path == ast.unparse(target)


def _began_as_leaf(scene: Scene, update: LeafUpdate, updates: list[LeafUpdate]) -> bool:
    """Whether the program asks for the gradient of what the target was before its first update."""
    statements = {id(u.statement) for u in updates}
    text = ast.unparse(container_of(_target(update)))
    others = (n for _, n in scene.index.nodes(ast.Assign) if id(n) not in statements)
    first = [v for n in others for t, v in _pairs(n) if ast.unparse(t) == text]
    makers = [*first, *(s.node for s in _before(scene, update))]
    if any(makes_leaf(inner) for maker in makers for inner in ast.walk(maker)):
        return True
    asked = tuple(asked_for_gradient(scene))
    if any(spot.text.split("[")[0] == text for spot in asked):
        return True
    behind = {id(s.node) for s in computation(scene, update.value, 40)} if asked else set[int]()
    return any(id(m.node) in behind for spot in asked for m in scene.slicer.makers(spot))


def _before(scene: Scene, update: LeafUpdate) -> list[ExprAt]:
    """What made the target's value when its function or cell began."""
    body = getattr(update.target.scope.body, "body", None)
    head = next((n for s in body or () for n in ast.walk(s) if isinstance(n, ast.expr)), None)
    if head is None:
        return []
    node = ast.parse(ast.unparse(update.target.node), mode="eval").body
    imagined = scene.slicer.imagined(update.target.inside(head), node)
    return [*scene.slicer.makers(imagined), *computation(scene, imagined, 40)]
