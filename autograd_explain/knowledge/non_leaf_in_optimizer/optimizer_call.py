"""The parameter that an optimizer refused, read from the optimizer's own frames."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.dataflow import Each, ExprAt
from autograd_explain.inspect.facts.expressions import live_spot
from autograd_explain.inspect.scene import Scene


@dataclass(frozen=True, eq=False)
class Refused:
    """`shown` is the user's expression for the parameter, where one leads to it; `given` is all
    that the optimizer was given with it."""

    tensor: torch.Tensor
    shown: ExprAt | None
    given: tuple[torch.Tensor, ...] = ()


def refused_parameter(scene: Scene) -> Refused | None:
    """The first non-leaf among the tensors that `add_param_group` looked at."""
    for live in reversed(scene.incident.frames):
        if live.function != "add_param_group":
            continue
        values = live.frame.f_locals
        given = _of_group(values.get("param_group"))
        candidates = [values.get("param"), *given]
        for value in candidates:
            if isinstance(value, torch.Tensor) and not (value.is_leaf or value.retains_grad):
                return Refused(value, _shown(scene, value), tuple(given))
    return None


def refused_next(scene: Scene, refused: Refused) -> Iterator[Refused]:
    """The other non-leaves that the optimizer was given, in this group or in one beside it, each
    with the user's expression for it: it would refuse them in their turn."""
    groups = [live.frame.f_locals.get("param_groups") for live in scene.incident.frames]
    listed = [g.get("params") for gs in groups if isinstance(gs, list) for g in gs
              if isinstance(g, dict)]  # fmt: skip
    beside = [t for ts in listed if isinstance(ts, (list, tuple)) for t in ts]
    seen = {id(refused.tensor)}
    for value in (*refused.given, *beside):
        if isinstance(value, torch.Tensor) and id(value) not in seen:
            seen.add(id(value))
            if not (value.is_leaf or value.retains_grad):
                yield Refused(value, _shown(scene, value))


def _of_group(group: Any) -> list[Any]:
    params = group.get("params", ()) if isinstance(group, dict) else ()
    return [params] if isinstance(params, torch.Tensor) else list(params)


def _shown(scene: Scene, tensor: torch.Tensor) -> ExprAt | None:
    """The expression that names the tensor: in the optimizer's arguments, or any live name."""
    spot = scene.surfaced
    if spot is None:
        return None
    given = list(given_expressions(scene, spot))
    same = [s for s in given if scene.slicer.value(s) is tensor]
    if same:
        return same[0]
    named = live_spot(scene, tensor)
    if named is not None:
        return named
    return given[0] if len(given) == 1 else None


def given_expressions(scene: Scene, call: ExprAt) -> Iterator[ExprAt]:
    """Every expression that may have put a tensor among the parameters."""
    slicer = scene.slicer
    pending = [s for s in slicer.operands(call)]
    seen: set[int] = set()
    while pending:
        spot = pending.pop(0)
        if id(spot.node) in seen or len(seen) > 200:
            continue
        seen.add(id(spot.node))
        if isinstance(spot.node, (ast.Name, ast.Attribute, ast.Subscript)):
            yield spot
        for maker in slicer.makers(spot):
            if isinstance(maker.node, (ast.ListComp, ast.GeneratorExp)):
                pending.append(maker.inside(maker.node.elt))
            if isinstance(maker.node, (ast.List, ast.Tuple, ast.Dict)):
                pending += [maker.inside(n) for n in ast.iter_child_nodes(maker.node)
                            if isinstance(n, ast.expr)]  # fmt: skip
        pending += slicer.insertions(spot, Each.ITEM)
