"""An optimizer got something else than an iterable of tensors."""

import ast
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call, live_value, maker
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place, Role, TensorFact

PATTERNS = ("optimizer-params-tensor", "optimizer-param-not-tensor")

EXAMPLE = {
    "place": "In[2]:1",
    "given": "[encoder, decoder]",
    "type": "Linear",
}


class Way(Enum):
    """What turns the argument into parameters."""

    WRAP = "wrap"
    VALUES = "values"
    PARAMETERS = "parameters"
    UNPACK = "unpack"


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    way: Way | None
    modules: tuple[Place, ...]
    iterables: tuple[Place, ...]


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene)
    given = call and call.argument(0, "params")
    if given is None:
        return None
    way = _way(scene, given)
    parts = [given.inside(e) for e in getattr(given.node, "elts", ())]
    unpacked = [p for p in parts if _unpacks(scene, p)] if way is Way.UNPACK else []
    modules = scene.places_at(p for p in unpacked if _is_module(scene, p))
    iterables = scene.places_at(p for p in unpacked if not _is_module(scene, p))
    kind = scene.match.captures.get("type", "")
    return finding_from_message(
        scene,
        "optimizer_given_no_tensors",
        EXAMPLE,
        facts={"given": given.text, "type": kind.rsplit(".", 1)[-1].strip("'<>")},
        at=given,
        variant="tensor" if scene.match.pattern == "optimizer-params-tensor" else "",
        confidence=Confidence.PROVEN if way else Confidence.LIKELY,
        tensors=(TensorFact(Role.CULPRIT, (given.text,)),),
    ).with_details(Details(way, modules, iterables))


def _way(scene: Scene, given: ExprAt) -> Way | None:
    """What turns it into parameters; None where that cannot be told."""
    if scene.match.pattern == "optimizer-params-tensor":
        return Way.WRAP
    node = given.node
    if isinstance(node, (ast.List, ast.Tuple)):
        parts = [given.inside(e) for e in node.elts if not isinstance(e, ast.Starred)]
        return (
            Way.UNPACK
            if parts and all(_unpacks(scene, p) or _tensor(scene, p) for p in parts)
            else None
        )
    made = maker(scene, given)
    if made is not None and made.called == "state_dict":
        return Way.PARAMETERS if made.node is node else None
    value: Any = live_value(scene, given)
    if (
        isinstance(value, dict)
        and value
        and all(isinstance(v, torch.Tensor) for v in value.values())
    ):
        return Way.VALUES
    return None


def _unpacks(scene: Scene, part: ExprAt) -> bool:
    """A module, `net.parameters()`, or a list of tensors inside the list."""
    if part.called in ("parameters", "list"):
        return True
    value: Any = live_value(scene, part)
    if isinstance(value, torch.nn.Module):
        return True
    return type(value) in (list, tuple) and all(isinstance(v, torch.Tensor) for v in value)


def _tensor(scene: Scene, part: ExprAt) -> bool:
    return isinstance(live_value(scene, part), torch.Tensor)


def _is_module(scene: Scene, part: ExprAt) -> bool:
    return isinstance(live_value(scene, part), torch.nn.Module)
