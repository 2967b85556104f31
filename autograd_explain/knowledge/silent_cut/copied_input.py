"""The numbers of what a derivative is taken by were put into another leaf, and read there."""

from __future__ import annotations

import ast

from autograd_explain.arguments import positional_parameters
from autograd_explain.inspect.facts.silent_evidence import (
    culprit,
    event,
    moment,
    name_of,
    tensors,
    text_of,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Certainty, Confidence, Finding, Place, What, label

from .details import Details


def of_copied_input(scene: Scene) -> Finding[Details] | None:
    cut, used = moment(scene, "cut"), moment(scene, "used")
    if cut is None or used is None:
        return None
    evidence = scene.incident.evidence
    given, reader = (next(iter(tensors(scene, k)), None) for k in ("parameters", "reader"))
    live = () if given is None else scene.names.of(given)
    names = tuple(dict.fromkeys((*_arguments_read(scene, cut.place), *live)))
    into = evidence["read_shape"] if reader is None else name_of(scene, reader)
    events = (
        scene.event(What.CAUSE, cut, certainty=Certainty.OBSERVED),
        event(scene, What.FAILED, "backward"),
    )
    return Finding(
        cause="silent_cut",
        confidence=Confidence.PROVEN,
        facts={
            "parameter": next(iter(names), evidence["shapes"][0]),
            "parameters": "",
            "count": "1",
            "operation": text_of(scene, cut.place),
            "operand": "",
            "place": label(cut.place),
            "optimizer": "",
            "step": "",
            "inside": "",
            "inside_place": "?",
            "value": text_of(scene, used.place),
            "passed": into,
        },
        tensors=(culprit(scene, given, *names, into),),
        events=tuple(e for e in events if e is not None),
        variant="input",
        details=Details(repairable=False, copied_input=True),
    )


def _arguments_read(scene: Scene, place: Place) -> tuple[str, ...]:
    """What the line reads of the arguments of its function: a derivative by a function's inputs is
    taken of copies, which have no other name."""
    source, statement = scene.program.source_at(place), scene.program.statement_at(place)
    function = None if source is None or statement is None else source.function_around(statement)
    if statement is None or not isinstance(function, ast.FunctionDef):
        return ()
    own = positional_parameters(function)
    read = (n.id for n in ast.walk(statement) if isinstance(n, ast.Name))
    return tuple(name for name in read if name in own)
