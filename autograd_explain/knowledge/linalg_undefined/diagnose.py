"""A matrix decomposition whose gradient is not defined."""

from __future__ import annotations

from autograd_explain.inspect.dataflow import Cut, ExprAt
from autograd_explain.inspect.facts.binding import binding_of
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import backward_roots
from autograd_explain.inspect.facts.value_names import cut_names
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding, Place, Role, TensorFact, What

#: By the message, how the nodes of the decompositions are named that raise it (torch 2.13).
_NODES = {
    "linalg-svd-phase": "LinalgSvd",
    "linalg-eig-phase": "LinalgEig",
    "linalg-qr-complete": "LinalgQr",
    "linalg-qr-r": "LinalgQr",
}
PATTERNS = (
    "linalg-svd-phase",
    "linalg-eig-phase",
    "linalg-qr-complete",
    "linalg-qr-r",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    """Told at what was computed of the decomposition without its gradient, where one value in the
    loss was: there the choice of the phase does not cancel.  Else at the decomposition."""
    prefix = _NODES[scene.match.pattern]
    made = scene.makers(n for n in scene.graph.nodes if n.name.startswith(prefix))
    moment = made[0] if len({m.place.line_id for m in made}) == 1 else None
    created = scene.event(What.CREATED, moment)
    cut = None if moment is None else _cut(scene, moment)
    names = () if cut is None else cut_names(scene, cut)
    names += () if moment is None else binding_of(scene.program, moment).names
    return finding_from_message(
        scene,
        "linalg_undefined",
        EXAMPLE,
        at=None if cut is None else _place(scene, cut),
        more=() if created is None else (created,),
        tensors=(TensorFact(Role.CULPRIT, tuple(dict.fromkeys(names))),) if names else (),
    )


def _cut(scene: Scene, moment: TraceEvent) -> Cut | None:
    """The operation nearest to the loss that takes what the decomposition gave without its
    gradient; None where several places do."""
    spots = (s for root in backward_roots(scene) for s in computation(scene, root))
    found = [(s, cut) for s in spots if (cut := scene.gradient_tracer.cut_at(s)) is not None]
    cuts = [c for s, c in found if any(_gives(scene, o, moment) for o in scene.slicer.operands(s))]
    places = {_place(scene, cut).line_id for cut in cuts}
    return cuts[0] if len(places) == 1 else None


def _gives(scene: Scene, spot: ExprAt, moment: TraceEvent) -> bool:
    """Whether a value comes from the decomposition."""
    spots = (*scene.slicer.makers(spot), *computation(scene, spot))
    return any(scene.slicer.place(s).line_id == moment.place.line_id for s in spots)


def _place(scene: Scene, cut: Cut) -> Place:
    """What turned recording off there, or the operation itself."""
    if cut.off is not None:
        return scene.slicer.place_of(cut.off.scope, cut.off.node)
    return scene.slicer.place(cut.spot)
