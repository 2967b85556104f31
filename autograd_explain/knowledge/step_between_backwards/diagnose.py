"""An optimizer stepped between the forward pass and a backward that needs the old parameters."""

from dataclasses import dataclass
from itertools import islice

import torch

from autograd_explain.inspect.dataflow.cut_kinds import is_about_shape
from autograd_explain.inspect.facts.call_levels import Path, at_one_level, distinct
from autograd_explain.inspect.facts.expressions import computation, expression_at
from autograd_explain.inspect.facts.loop_carried import LoopCarried
from autograd_explain.inspect.facts.overwrite import (
    Overwrite,
    culprit,
    events,
    find_overwrite,
    first_writes,
)
from autograd_explain.inspect.facts.torch_call import backward_roots
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.live.shapes import shown_shape
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Confidence, Finding, LineId, Place, Role, TensorFact, label

from .carried_state import carried_across
from .spent import spent

PATTERNS = (
    "inplace-version-mismatch",
    "inplace-version-mismatch-leaf",
    "inplace-version-mismatch-anomaly",
    "inplace-version-mismatch-leaf-anomaly",
)

EXAMPLE = {
    "tensor": "critic.weight",
    "saver": "actor_loss = -critic(action).mean()",
    "saver_place": "In[2]:2",
    "step": "critic_opt.step()",
    "step_place": "In[2]:6",
    "saved_version": "1",
    "current_version": "2",
    "failed": "actor_loss.backward()",
    "failed_place": "In[2]:8",
    "optimizer": "critic_opt",
    "state": "",
    "state_kind": "",
}


@dataclass(frozen=True)
class Details:
    """Step, failing line and forward statements, at the level where they differ."""

    step: Place
    failed: Place
    forward: tuple[Place, ...]  #: what computed the part that fails
    further: tuple[Place, ...]  #: the other steps that wrote what this backward needs, in order
    cleared: bool  #: the gradients that the step used are cleared before the backward that fails
    spent: Place | None  #: a kept loss that went backward before the step
    whole: tuple[Place, ...]  #: what computed any part of the graph; () where too much did
    shares_gradients: bool
    carried: LoopCarried | None  #: what the loop carries on


def diagnose(scene: Scene) -> Finding[Details | None] | None:
    found = find_overwrite(scene)
    if found is None or not found.by_step:
        return None
    fact = culprit(scene, found)
    guilty, maker, place = found.guilty, found.maker, scene.place
    optimizer = found.optimizers[0] if found.optimizers else ""
    shared = _shares_gradients(scene, found)
    carried = None if guilty is None else carried_across(scene, guilty)
    return Finding(
        cause="step_between_backwards",
        # Held by an optimizer, yet no `step()` seen: likely, but another write may have done it.
        confidence=Confidence.PROVEN if guilty is not None else Confidence.LIKELY,
        facts={
            "tensor": fact.names[0] if fact.names else shown_shape(found.saved.tensor),
            "saver": maker.place.source if maker else found.saved.node.name,
            "saver_place": label(maker.place if maker else None),
            "step": guilty.place.source if guilty else f"{optimizer}.step()",
            "step_place": label(guilty.place if guilty else None),
            "saved_version": str(found.saved.saved_version),
            "current_version": str(found.saved.current_version),
            "failed": place.source if place else "",
            "failed_place": label(place),
            "optimizer": optimizer,
            "state": carried.names[0] if carried else "",
            "state_kind": carried.kind.value if carried else "",
        },
        tensors=(fact, *_roots(scene)),
        events=events(scene, found),
        variant="shares_gradients" if shared else "",
        details=_details(scene, found, shared, carried),
    )


def _roots(scene: Scene) -> tuple[TensorFact, ...]:
    return tuple(scene.fact(Role.ROOT, root) for root in scene.roots[:1])


def _details(
    scene: Scene, found: Overwrite, shared: bool, carried: LoopCarried | None
) -> Details | None:
    """None where the step is not known."""
    if found.guilty is None:
        return None
    written = list(islice(scene.graph.overwritten(), _MANY))
    # Each of them fails once the one before it is repaired.
    nodes = scene.graph.above([found.saved.node, *(s.node for s in written)])
    forward = [m.path for m in scene.makers(nodes)]
    if any(scene.history.maker(n) is None for n in nodes):
        forward += _unseen(scene, forward)
    steps = _other_steps(scene, found.guilty)
    step, failed, *rest = at_one_level([found.guilty.path, scene.path, *steps, *forward])
    further, forwards = distinct(rest[: len(steps)]), distinct(rest[len(steps) :])
    kept = spent(scene, [s.node for s in written])
    whole, cleared = _whole(scene, found.guilty), _is_cleared(scene, found)
    return Details(step, failed, forwards, further, cleared, kept, whole, shared, carried)


def _other_steps(scene: Scene, guilty: TraceEvent) -> list[Path]:
    """The lines that led to the first step that wrote each of the overwritten tensors, but for the
    guilty one, oldest first."""
    steps = {first.path: first for _, first in first_writes(scene, _MANY) if first.op == "step"}
    others = [w for w in steps.values() if w.place.line_id != guilty.place.line_id]
    return [w.path for w in sorted(others, key=lambda w: w.order)]


def _unseen(scene: Scene, seen: list[Path]) -> list[Path]:
    """The lines of the failing function that compute what goes backward of what these have made, as
    the text tells: of the operations of a package's objects not all may be known."""
    known = {place.line_id for path in seen for place in path}
    lines: dict[LineId, Place] = {}
    for root in backward_roots(scene):
        spots = [*scene.slicer.makers(root), *computation(scene, root)]
        for spot in (s for s in spots if s.scope.body is root.scope.body):
            if is_about_shape(spot.node):
                continue
            place = scene.slicer.place(spot)
            behind = {scene.slicer.place(s).line_id for s in computation(scene, spot)}
            if place.line_id not in known and behind & known:
                lines[place.line_id] = place
    return [(*scene.path[:-1], p) for p in sorted(lines.values(), key=lambda p: p.line)]


def _whole(scene: Scene, guilty: TraceEvent) -> tuple[Place, ...]:
    """The statements that made any part of the graph, at the level where step and failure
    differ; () where they are too many to look at."""
    nodes = scene.graph.nodes
    if len(nodes) > _MANY:
        return ()
    paths = (m.path for m in scene.makers(nodes))
    return distinct(at_one_level([guilty.path, scene.path, *paths])[2:])


_MANY = 400


def _shares_gradients(scene: Scene, found: Overwrite) -> bool:
    """Whether the failing backward also leaves gradients in what the optimizer updates.

    Where it reaches others as well (the generator behind a discriminator), waiting for it would
    change the step itself.  Where it reaches nothing else, its gradients are
    meant for that very step.
    """
    held = _held(scene, found)
    leaves = {id(n.variable) for n in scene.graph.nodes if n.variable is not None}
    return bool(leaves & held and leaves - held)


def _is_cleared(scene: Scene, found: Overwrite) -> bool:
    """Whether what the guilty step updates loses its gradients behind it, before the failure."""
    after = 0 if found.guilty is None else found.guilty.order
    calls = (m for m in scene.history.steps if m.op == "zero_grad" and m.order > after)
    held = _held(scene, found)
    owners = (owner for call in calls for owner in _owners(scene, call))
    return any(held & _parameters(owner) for owner in owners)


def _held(scene: Scene, found: Overwrite) -> set[int]:
    """What the guilty step updates; where its optimizer is not known, what any does that holds the
    overwritten tensor."""
    holders = [o for _, o in scene.names.holders(found.saved.tensor)]
    owners = () if found.guilty is None else _owners(scene, found.guilty)
    stepped = [o for o in holders if any(o is owner for owner in owners)]
    return {p for o in stepped or holders for p in _parameters(o)}


def _owners(scene: Scene, call: TraceEvent) -> list[object]:
    """The live objects that a call of `step` or `zero_grad` may be meant for: what has the method,
    and `optimizer` of `scaler.step(optimizer)`."""
    spot = expression_at(scene, call.place)
    given = () if spot is None else (spot.receiver, spot.argument(0, "optimizer"))
    return [scene.slicer.value(g) for g in given if g is not None]


def _parameters(owner: object) -> set[int]:
    if is_a(owner, torch.optim.Optimizer):
        return {id(p) for group in owner.param_groups for p in group["params"]}
    return {id(p) for p in owner.parameters()} if is_a(owner, torch.nn.Module) else set()
