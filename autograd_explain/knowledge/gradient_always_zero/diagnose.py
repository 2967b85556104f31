"""Every way from the loss to a parameter leads through an operation whose derivative is 0, or one
does that leads through a random draw."""

import ast
from dataclasses import dataclass

from autograd_explain.inspect.dataflow.grad_mode import switched_off_around
from autograd_explain.inspect.facts.silent_evidence import (
    culprit,
    event,
    listed,
    moment,
    name_of,
    tensors,
    text_of,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Certainty, Confidence, Event, Finding, Place, What, ZeroBy, label
from autograd_explain.rewrite.engine.imports import imports_at

from .difference import differences

PATTERNS = ("zero-gradient", "cancelled-difference")

EXAMPLE = {
    "parameter": "model[0].weight",
    "parameters": "model[0].weight, model[0].bias, model[2].weight, model[2].bias",
    "operation": "torch.round(model(features))",
    "operand": "model(features)",
    "sum": "",
    "function": "round",
    "place": "In[2]:3",
    "backward": "loss.backward()",
}
_AWAITED = 4
_ROUNDING = "rounding_mode"
_SAMPLER = "grid_sample"  #: also torch.grid_sampler


@dataclass(frozen=True)
class Details:
    """The call's operand; `whole` says that all of the loss is computed of what such operations
    give, `divides` that the call is a division which rounds.  `mode` is the one place of the
    program that says "nearest", where that is why."""

    operand: Place | None
    whole: bool
    divides: bool
    function: str = ""  #: torch's name of it
    mode: Place | None = None
    by: ZeroBy = ZeroBy.OPERATION
    older: Place | None = None  #: of a difference the side that was computed first
    sum: Place | None = None  #: what a difference takes a part away of


def diagnose(scene: Scene) -> Finding[Details] | None:
    if scene.match.pattern == "cancelled-difference":
        return _of_difference(scene)
    made = moment(scene, "operation")
    place = None if made is None else made.place
    if made is None or place is None:
        return None
    lost = tensors(scene, "parameters")
    shapes: tuple[str, ...] = scene.incident.evidence.get("shapes", ())
    names = tuple(name_of(scene, p) for p in lost) or shapes
    operand, divides = _operand(scene, place)
    failed = event(scene, What.FAILED, "backward")
    by, function = scene.incident.evidence["by"], made.op.strip("_")
    partly, sampled = by is ZeroBy.DRAW, function.startswith(_SAMPLER)
    drawn = (*filter(None, (made.target,)), *made.operands) if partly else ()
    whole = _sum(scene, place) if by is ZeroBy.DIFFERENCE else None
    return Finding(
        cause="gradient_always_zero",
        confidence=Confidence.PROVEN,
        facts={
            "parameter": names[0],
            "parameters": listed(names),
            "operation": text_of(scene, place),
            "operand": "" if operand is None else text_of(scene, operand),
            "sum": "" if whole is None else text_of(scene, whole),
            "function": function,
            "place": label(place),
            "backward": "" if failed is None or failed.place is None else failed.place.source,
        },
        tensors=(culprit(scene, next(iter(lost), None), *names[:_AWAITED], *drawn),),
        events=tuple(e for e in (event(scene, What.CAUSE, "operation"), failed) if e is not None),
        variant="nearest" if sampled else by.value,
        details=Details(
            None if sampled or by in (ZeroBy.SUM, ZeroBy.DIFFERENCE) else operand,
            bool(scene.incident.evidence.get("whole")),
            divides,
            function,
            _only_nearest(scene) if sampled else None,
            by,
            sum=whole,
        ),
        awaited=() if partly else names[:_AWAITED],
    )


def _sum(scene: Scene, place: Place) -> Place | None:
    """`a` of `a - b`, and of a call that is given nothing else."""
    source, node = scene.program.source_at(place), scene.program.expression_at(place)
    found = node.left if isinstance(node, ast.BinOp) else None
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        found = node.args[0]
    return None if source is None or found is None else source.place(found.lineno, None, found)


def _of_difference(scene: Scene) -> Finding[Details] | None:
    """The first difference that another run of the cell has shown to give no gradient."""
    found = next(differences(scene), None)
    if found is None:
        return None
    place, older = scene.slicer.place(found.whole), scene.slicer.place(found.older)
    failed = event(scene, What.FAILED, "backward")
    tensor = scene.names.named(found.leaves[0])
    cause = Event(What.CAUSE, place, certainty=Certainty.OBSERVED)
    return Finding(
        cause="gradient_always_zero",
        confidence=Confidence.PROVEN,
        facts={
            "parameter": found.leaves[0],
            "parameters": listed(found.leaves),
            "operation": text_of(scene, place),
            "operand": text_of(scene, older),
            "sum": "",
            "function": "sub",
            "place": label(place),
            "backward": "" if failed is None or failed.place is None else failed.place.source,
        },
        tensors=(culprit(scene, tensor, found.older.text, *found.leaves[1:_AWAITED]),),
        events=tuple(e for e in (cause, failed) if e is not None),
        variant="difference",
        details=Details(None, False, False, older=older),
    )


def _only_nearest(scene: Scene) -> Place | None:
    """The one such word of the program, what is not recorded apart."""
    slicer = scene.slicer
    words = (slicer.at(s, n) for s, n in scene.index.nodes(ast.Constant) if n.value == "nearest")
    found = [slicer.place(w) for w in words if switched_off_around(slicer, w) is None]
    return found[0] if len(found) == 1 else None


def _operand(scene: Scene, place: Place) -> tuple[Place | None, bool]:
    """`x` of `torch.round(x)` and of `x.round()`, and whether the call divides."""
    source, call = scene.program.source_at(place), scene.program.expression_at(place)
    if source is None or not isinstance(call, ast.Call):
        return None, False
    written = imports_at(scene.program, place).full(ast.unparse(call.func))
    if written.startswith("torch.") or not isinstance(call.func, ast.Attribute):
        given = call.args[0] if call.args else None
    else:
        given = call.func.value
    divides = any(keyword.arg == _ROUNDING for keyword in call.keywords)
    return (None if given is None else source.place(given.lineno, None, given)), divides
