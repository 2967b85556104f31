"""A value left the graph on its way into the loss: parameters before it never get a gradient."""

import ast
from dataclasses import replace

import torch

from autograd_explain.inspect.facts.library_cache import caching_options
from autograd_explain.inspect.facts.memoization import remembered
from autograd_explain.inspect.facts.mode_of_library import options_behind
from autograd_explain.inspect.facts.numbers_given import Kept, numbers_given
from autograd_explain.inspect.facts.silent_evidence import (
    culprit,
    event,
    listed,
    moment,
    moments,
    name_of,
    optimizer_name,
    tensors,
    text_of,
)
from autograd_explain.inspect.facts.twins import all_twins
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Certainty, Confidence, Event, Finding, Place, What, label

from .copied_input import of_copied_input
from .details import Details, Swapped, decorated, kept_as, widest
from .missing import of_missing_gradient
from .partial import of_partial_cut
from .recording_off import as_events, behind, recording_off

PATTERNS = (
    "graph-cut",
    "partial-cut",
    "grad-none-attribute",
    "grad-none-arithmetic",
    "grad-none-first",
    "grad-none-unary",
)

EXAMPLE = {
    "parameter": "model.encoder.weight",
    "parameters": "model.encoder.weight, model.encoder.bias",
    "count": "2",
    "operation": "h.detach().numpy()",
    "operand": "h",
    "place": "In[1]:15",
    "optimizer": "optimizer",
    "step": "optimizer.step()",
    "inside": "",
    "inside_place": "?",
    "value": "",
    "passed": "",
}


def diagnose(scene: Scene) -> Finding[Details] | None:
    if scene.match.pattern == "partial-cut":
        return of_partial_cut(scene)
    if scene.match.pattern.startswith("grad-none"):
        return of_missing_gradient(scene)
    if scene.incident.evidence.get("way") == "input":
        return of_copied_input(scene)
    lost = tensors(scene, "parameters")
    cuts = sorted(moments(scene, "cut"), key=_line)
    if not cuts:
        return None
    first, step = widest(cuts), moment(scene, "step")
    # The parameters of a model that lived in a function are gone when it has returned.
    shapes: tuple[str, ...] = scene.incident.evidence.get("shapes", ())
    names = tuple(name_of(scene, p) for p in lost) or shapes
    operand = _operand(cuts[0], names)
    kept = (first.target,) if first.target else kept_as(scene, first)
    variant = _variant(scene, cuts)
    kept_on = int(scene.incident.evidence.get("kept", 0)) if variant == "no_grad" else 0
    memory = remembered(scene.program, first.path[-kept_on:]) if kept_on else None
    options = caching_options(scene) if kept_on and memory is None else ()
    turned = _turned_off(scene) if variant == "no_grad" else None
    variant = "off_in_library" if turned else variant
    called = _modules_of(scene, lost) if turned or variant == "unused" else ()
    called = called if turned else (*called, operand, *kept)
    fact = culprit(scene, next(iter(lost), None), *called, *names[1:])
    if variant == "graphless":  # the derivative is what the program has of it
        fact = culprit(scene, None, *kept_as(scene, first), *names)
    inside = turned.inside if turned else cuts[0].inside
    options = options_behind(scene, inside) if variant in _OF_LIBRARY else options
    switch = str(scene.incident.evidence.get("switch", "")) if variant == "library" else ""
    off = None if variant != "no_grad" or memory or options else recording_off(scene, cuts)
    call = _call_of_function(scene, first) if variant == "function" else None
    shown = (turned,) if turned else (first, *(c for c in cuts if c is not first))
    causes = [scene.event(What.CAUSE, m, certainty=Certainty.OBSERVED) for m in shown]
    events = as_events(causes, off)
    if call is not None:
        events = behind(Event(What.CAUSE, call, certainty=Certainty.OBSERVED), causes)
    if memory is not None and len(first.path[-kept_on:]) > 1:
        events = behind(Event(What.CAUSE, memory.place), causes)
    if options:
        option = Event(What.CAUSE, options[0][0])
        events = [option, *causes] if turned else behind(option, causes)
    call = turned.place if turned else call
    events += [event(scene, What.FAILED, "backward") or event(scene, What.FAILED, "step")]
    return Finding(
        cause="silent_cut",
        confidence=Confidence.PROVEN if moment(scene, "backward") else Confidence.LIKELY,
        facts={
            "parameter": names[0],
            "parameters": listed(names),
            "count": str(scene.incident.evidence.get("count", len(names))),
            "operation": text_of(scene, call or first.place),
            "operand": operand if call is None else text_of(scene, first.place),
            "inside": "" if inside is None else inside.source.rstrip(":"),
            "inside_place": label(inside),
            "place": label(call or first.place),
            "value": str(scene.incident.evidence.get("value", "")),
            "passed": str(scene.incident.evidence.get("passed", "")) or listed(_reached(scene)),
            "optimizer": optimizer_name(scene),
            "step": step.place.source if step else "",
        },
        tensors=(fact,),
        events=tuple(e for e in events if e is not None),
        variant="kept" if kept_on else variant,
        details=Details(
            repairable=variant not in _WITHOUT_REWRITE,
            off=off,
            undecorated=decorated(scene, first) if off is None else (),
            swapped=_swapped(scene, first),
            memory=None if memory is None else memory.place,
            options=options,
            kept=_numbers(scene, first) if variant == "written" else (),
            anew=bool(scene.incident.evidence.get("anew")),
            switch=(first.place, switch) if switch else None,
            twins=all_twins(scene) if variant == "graphless" else (),
            drawn=first.place if ".sample(" in text_of(scene, first.place) else None,
        ),
        awaited=names[:1] if lost and _is_awaited(scene, variant) else (),
    )


def _operand(cut: TraceEvent, lost: tuple[str, ...]) -> str:
    """What left the graph: of several things that a library's call was given the one that is called
    as a parameter that lost its gradient is, else that parameter, which it was computed of."""
    if cut.inside is None or len(cut.operands) < 2 or not lost:
        return next(iter(cut.operands), "")
    ends = {name.rpartition(".")[2] for name in lost}
    return next((o for o in cut.operands if o.rpartition(".")[2] in ends), lost[0])


def _reached(scene: Scene) -> tuple[str, ...]:
    """What the term of a loss gives its gradient to."""
    return tuple(name_of(scene, tensor) for tensor in tensors(scene, "reached"))


def _numbers(scene: Scene, cut: TraceEvent) -> tuple[Kept, ...]:
    """What the cut's line gives to an object that keeps the numbers."""
    line = cut.place.line_id
    given = numbers_given(scene, lambda value: scene.slicer.place(value).line_id == line)
    return tuple(dict.fromkeys(g.kept for g in given))


def _swapped(scene: Scene, cut: TraceEvent) -> Swapped | None:
    """The sum around or under a `detach` that is no straight-through one."""
    evidence, source = scene.incident.evidence, scene.program.source_at(cut.place)
    way = evidence.get("way")
    node = scene.program.expression_at(cut.place)
    if way not in _SUMS or source is None or not isinstance(node, ast.Call):
        return None
    whole = way == "stopped_sum"
    place = source.place(node.lineno, None, node if whole else source.parents[node])
    return Swapped(place, evidence["value"], evidence["passed"], whole)


def _is_awaited(scene: Scene, variant: str) -> bool:
    """Not where a second cut stands in the way, so that no rewrite of the first alone gives a
    gradient, nor where other terms of the loss give one."""
    return variant not in (*_TERMS, *_SUMS) and not scene.incident.evidence.get("cut_again")


def _call_of_function(scene: Scene, cut: TraceEvent) -> Place | None:
    """The line that called the custom Function in whose `forward` a cut is."""
    inner = scene.incident.evidence.get("inner", 0)
    return next(iter(cut.path[-1 - inner :]), None) if inner < len(cut.path) else None


def _turned_off(scene: Scene) -> TraceEvent | None:
    """The program's call in which a library turned recording off, `inside` being where."""
    found: tuple[Place, int] | None = scene.incident.evidence.get("turned_off")
    cut = moment(scene, "cut")
    path = () if cut is None or found is None else cut.path[: len(cut.path) - found[1]]
    if cut is None or found is None or not path:
        return None
    return replace(cut, place=path[-1], chain=path[:-1], inside=found[0])


def _modules_of(scene: Scene, parameters: tuple[torch.Tensor, ...]) -> tuple[str, ...]:
    """The names of the modules that have these parameters and no other."""
    lost = set(map(id, parameters))
    held = scene.names.held_modules
    return tuple(name for name, module in held if lost == set(map(id, module.parameters())))


def _line(cut: TraceEvent) -> tuple[bool, int, int]:
    """What the program wrote to leave the graph goes before an operation that has no derivative."""
    return cut.op not in _WRITTEN, cut.order, cut.place.line


_WRITTEN = frozenset("detach detach_ data numpy __array__ item tolist __float__ __int__".split())


def _variant(scene: Scene, cuts: list[TraceEvent]) -> str:
    """By what took the value out: the last call that did, in the cut's own line."""
    ops = {c.op for c in cuts}
    way = str(scene.incident.evidence.get("way", ""))
    if way == "function":
        return way
    if way in ("detach", "data") and not cuts[0].operands and cuts[0].place.span is not None:
        return "library"
    if "numpy" in ops or "__array__" in ops:
        return "numpy"
    if ops & {"item", "tolist", "__float__", "__int__"}:
        return "number"
    return way if way in _WAYS else "detach"


#: Straight-through sums with the `detach` in the wrong place.
_SUMS = ("swapped", "stopped_sum")
#: Of a loss, where other terms give a gradient.
_TERMS = ("term", "graphless", "unused", "partial")
_WAYS = ("copy", "written", "no_grad", "operation", "sample", *_TERMS, *_SUMS)
_OF_LIBRARY = ("library", "off_in_library")
_WITHOUT_REWRITE = ("no_grad", "operation", "sample", *_TERMS, *_SUMS, "function", *_OF_LIBRARY)
