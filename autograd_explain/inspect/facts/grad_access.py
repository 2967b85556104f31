"""The tensor whose `.grad` was read although it is no leaf."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from ...model import Event, Role, TensorFact
from ..dataflow import ExprAt
from ..live.class_source import function_node
from ..scene import Scene
from .expressions import attribute_read, live_spot
from .non_leaf import NonLeaf, analyse, events, fact
from .property_leaves import property_at
from .sibling_grad_reads import read_alike, spelled
from .torch_call import calls_in, elements, gone_back_from
from .value_names import stored_names


def non_leaf_read(scene: Scene) -> NonLeaf | None:
    """What the warning was about; None where the tensor cannot be had any more."""
    shown = attribute_read(scene, "grad")
    tensor = scene.incident.evidence.get("object")
    if not isinstance(tensor, torch.Tensor) and shown is not None:
        tensor = scene.slicer.value(shown)
    if not isinstance(tensor, torch.Tensor) or tensor.is_leaf or tensor.retains_grad:
        return None
    at = _spelled(scene, tensor, shown)
    return None if at is None else analyse(scene, tensor, at)


def _spelled(scene: Scene, tensor: torch.Tensor, shown: ExprAt | None) -> ExprAt | None:
    """As `spelled`; where a library reads it of what it was given, the user's name for it."""
    return live_spot(scene, tensor) if shown is None else spelled(scene, tensor, shown)


def unseen_read(scene: Scene) -> tuple[TensorFact, ExprAt | None] | None:
    """The reading as the source shows it, where the tensor itself is gone: what a call or a
    property returned.  With the one expression that computed it, if there is one."""
    shown = attribute_read(scene, "grad")
    if shown is None:
        return None
    if scene.match.pattern != "nonleaf-grad-access" and whole_with_gradient(scene) is None:
        return None
    made = list(_given_to_property(scene, shown)) or scene.slicer.makers(shown)
    made = [m for m in made if m.node is not shown.node]
    tensor = TensorFact(Role.CULPRIT, (shown.text,), is_leaf=False, requires_grad=True)
    return tensor, made[0] if len(made) == 1 else None


def _given_to_property(scene: Scene, shown: ExprAt) -> Iterator[ExprAt]:
    """What computed the values that the program stores under the name of a property which only
    keeps them, `data.x = torch.cat(…)`: reading it gives back what was stored."""
    read = property_at(scene, shown)
    if read is not None and isinstance(shown.node, ast.Attribute) and _only_keeps(read[2]):
        for value in scene.slicer.stores(read[1], shown.node.attr):
            yield from scene.slicer.makers(value)


def _only_keeps(found: property) -> bool:
    """Whether the setter keeps what it is given as it is, and the getter only looks it up."""
    getter, setter = function_node(found.fget), function_node(found.fset)
    if getter is None or setter is None or len(setter.args.args) < 2:
        return False
    given = setter.args.args[1].arg
    kept = [s.value for s in setter.body if isinstance(s, ast.Assign)]
    computing = (ast.Call, ast.BinOp, ast.UnaryOp)
    computed = any(isinstance(n, computing) for s in getter.body for n in ast.walk(s))
    return not computed and any(isinstance(n, ast.Name) and n.id == given for n in kept)


def whole_with_gradient(scene: Scene) -> ExprAt | None:
    """`x` of the `x[k].grad` or `x.view(n).grad` that is read, where x is a leaf with a gradient:
    the part is made anew each time that it is asked for."""
    shown = attribute_read(scene, "grad")
    if shown is None:
        return None
    part = shown.node
    whole = shown.receiver
    if isinstance(part, ast.Subscript):
        whole = shown.inside(part.value)
    value = None if whole is None else scene.slicer.value(whole)
    with_gradient = isinstance(value, torch.Tensor) and value.is_leaf and value.grad is not None
    return whole if with_gradient else None


def others_read(scene: Scene, found: NonLeaf) -> list[NonLeaf]:
    """The further non-leaves whose `.grad` is read along with it."""
    shown = attribute_read(scene, "grad")
    alike = read_alike(scene, found.tensor, shown)
    return [analyse(scene, t, _spelled(scene, t, shown)) for t in alike]


def told(scene: Scene, found: NonLeaf) -> tuple[tuple[TensorFact, ...], tuple[Event, ...]]:
    """The tensors of one reading, the culprit first, and the statements that made them."""
    others = others_read(scene, found)
    facts = (fact(scene, found), *(fact(scene, o, Role.OTHER) for o in others))
    made = [e for n in (found, *others) for e in events(scene, n, _node_name(n.tensor))]
    return facts, tuple(_distinct(made))


def _distinct(made: list[Event]) -> Iterator[Event]:
    seen = set()
    for event in made:
        if (event.what, event.place) not in seen:
            seen.add((event.what, event.place))
            yield event


def _node_name(tensor: torch.Tensor) -> str | None:
    return None if tensor.grad_fn is None else tensor.grad_fn.name()


def is_started_from(scene: Scene, found: NonLeaf) -> bool:
    """Whether the program calls backward on this tensor, so that it is a loss."""
    if found.tensor.dim() or found.maker is None:
        return False
    slicer, names = scene.slicer, {*stored_names(scene, found.maker)}
    for call in calls_in(scene, "backward"):
        given = gone_back_from(scene, call)
        for root in [] if given is None else elements(scene, given):
            if ast.unparse(root.node) in names:
                return True
            if any(m.node is found.maker.node for m in slicer.makers(root)):
                return True
    return False
