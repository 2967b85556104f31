"""A value that a loop goes back from element by element: the rows of a Jacobian or a Hessian, the
losses of the samples.  Each round needs the graph below the value, which the first one freed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a

from .freed_part import FreedPart

#: Operations that give parts of one value, all of them at once or the one that is asked for.
_ALL = ("Unbind", "Split")
_ONE = ("Select", "Slice", "Index", "Gather", "Take", "Narrow", "Diagonal")


def is_gone_through(scene: Scene, part: FreedPart, roots: list[ExprAt]) -> bool:
    """Whether each round of a loop goes back from another part of the old value: the loop's
    variable is the part, or says which one, and nothing else in the new graph is trained."""
    if len(roots) != 1 or part.leads_on or _is_updated(scene, part):
        return False
    above = scene.graph.parents(part.boundary)
    one = bool(above) and all(n.name.startswith((*_ALL, *_ONE)) for n in above)
    if not one and not part.boundary.name.startswith(_ALL):
        return False
    return any(_is_part(scene, spot) for spot in (roots[0], *scene.slicer.makers(roots[0])))


def _is_updated(scene: Scene, part: FreedPart) -> bool:
    """Whether something was written past autograd since the first backward: an update by hand,
    after which the value is an old one."""
    first = part.first
    return first is None or any(
        moment.order > first.order
        and moment.op.endswith("_")
        and (moment.grad_mode is False or moment.target.endswith(".data"))
        and not moment.target.endswith(".grad")
        for moment in scene.history.steps
    )


def _is_part(scene: Scene, spot: ExprAt) -> bool:
    """Whether an expression names a part with a graph by a loop's variable: `g` of
    `for g in grads`, `y[i]`."""
    through = {n for s in (spot, *spot.via) for n in _variables(s)}
    for place in (spot, *spot.via):
        for node in ast.walk(place.node):
            whole = node.value if isinstance(node, ast.Subscript) else node
            by = node.slice if isinstance(node, ast.Subscript) else node
            named = {n.id for n in ast.walk(by) if isinstance(n, ast.Name)}
            if isinstance(node, (ast.Name, ast.Subscript)) and isinstance(whole, ast.expr):
                if named & through and _has_graph(scene.slicer.value(place.inside(whole))):
                    return True
    return False


def _has_graph(value: object) -> bool:
    return is_a(value, torch.Tensor) and bool(getattr(value, "requires_grad", False))


def _variables(spot: ExprAt) -> Iterator[str]:
    """The names that loops and comprehensions around an expression give values to."""
    for around in spot.scope.source.around(spot.node):
        targets = [around.target] if isinstance(around, ast.For) else []
        targets += [g.target for g in getattr(around, "generators", ())]
        yield from (n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))
