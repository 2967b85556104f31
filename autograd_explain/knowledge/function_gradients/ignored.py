"""A `backward` whose result does not depend on the gradient that comes in."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autograd_explain.arguments import positional_parameters
from autograd_explain.inspect.facts.silent_evidence import event
from autograd_explain.inspect.facts.user_definitions import function_at
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Certainty, Event, Place, What
from autograd_explain.program import Source
from autograd_explain.program_index import Definition

if TYPE_CHECKING:
    from autograd_explain.verification import IgnoredGradient

_NAMES = 5


@dataclass(frozen=True)
class Ignored:
    """What is told of it.  `factor` is the gradient that comes in where the returned values at
    `places` should be times it."""

    function: str
    inputs: tuple[str, ...]
    input: str
    returned: str
    gradient: str
    factor: str
    places: tuple[Place, ...]
    names: tuple[str, ...]
    events: tuple[Event, ...]
    missing: bool  #: nothing is handed back
    partly: bool  #: though another term gives the leaves a gradient


def ignored(scene: Scene) -> Ignored | None:
    """What another run of the cell has shown; None where it has shown nothing."""
    shown: tuple[IgnoredGradient, ...] = scene.incident.evidence.get("ignored", ())
    for found in (f for f in shown if not f.second):
        source = scene.program.source(found.function.filename)
        backward = None if source is None else function_at(source, found.function.line)
        if source is not None and backward is not None:
            return _told(scene, found, source, backward)
    return None


def _told(
    scene: Scene, found: IgnoredGradient, source: Source, backward: ast.FunctionDef
) -> Ignored:
    owner = source.parents.get(backward)
    cls = owner.name if isinstance(owner, ast.ClassDef) else ""
    inputs = _inputs(owner) if isinstance(owner, ast.ClassDef) else []
    definition = Definition(source, backward)
    returned = [r for r in definition.returned if found.missing or not isinstance(r, ast.Constant)]
    parts = _parts(returned, found.numbers)
    gradient = incoming(backward)
    places = tuple(definition.at(part) for part in parts)
    whole = (found.fits or found.missing) and bool(gradient) and len(returned) == 1
    at = places[0] if places else definition.place
    failed = event(scene, What.FAILED, "backward")
    cause = Event(What.CAUSE, at, certainty=Certainty.OBSERVED)
    number = found.numbers[0]
    bound = scene.incident.namespace.items()
    applied = [n for n, v in bound if getattr(getattr(v, "__self__", None), "__name__", "") == cls]
    names = (cls, *(n for n in applied if n[:1] != "_"), *found.leaves)
    return Ignored(
        function=cls,
        inputs=tuple(inputs),
        input=inputs[number] if number < len(inputs) else "",
        returned=", ".join(ast.unparse(part) for part in parts),
        gradient=gradient,
        factor=gradient if whole else "",
        places=places if whole else (),
        names=tuple(dict.fromkeys(n for n in names if n))[:_NAMES],
        events=(cause, *(() if failed is None else (failed,))),
        missing=found.missing,
        partly=found.partly,
    )


def _parts(returned: Sequence[ast.expr], numbers: Sequence[int]) -> list[ast.expr]:
    """The values that the last `return` hands back for some inputs."""
    if not returned:
        return []
    whole = returned[-1]
    parts = whole.elts if isinstance(whole, ast.Tuple) else [whole]
    if any(isinstance(p, ast.Starred) for p in parts) or max(numbers) >= len(parts):
        return []
    return [parts[number] for number in numbers]


def incoming(backward: ast.FunctionDef) -> str:
    """What a backward calls the gradient that comes in."""
    names = positional_parameters(backward)
    rest = backward.args.vararg
    return names[1] if len(names) > 1 else f"{rest.arg}[0]" if rest is not None else ""


def _inputs(owner: ast.ClassDef) -> list[str]:
    methods = {n.name: n for n in owner.body if isinstance(n, ast.FunctionDef)}
    forward = methods.get("forward")
    return [] if forward is None else inputs_of(forward, "setup_context" in methods)


def inputs_of(forward: ast.FunctionDef | ast.AsyncFunctionDef, separate: bool) -> list[str]:
    """The parameters of a `forward` without `ctx`, which it has not where the context is set
    apart."""
    names = positional_parameters(forward)
    if forward.args.vararg is not None:
        names.append(f"*{forward.args.vararg.arg}")
    return names if separate else names[1:]
