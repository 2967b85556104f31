"""A custom Function that keeps what its `forward` computed, for a `backward` that is differentiated
again: there it counts as a constant."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autograd_explain.arguments import positional_parameters
from autograd_explain.inspect.facts.silent_evidence import event
from autograd_explain.inspect.facts.user_definitions import function_at
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import (
    Certainty,
    Confidence,
    Event,
    Finding,
    Place,
    Role,
    TensorFact,
    What,
    label,
)
from autograd_explain.program import Source, called_name, last_name

if TYPE_CHECKING:
    from autograd_explain.verification import IgnoredGradient

_NAMES = 5


@dataclass(frozen=True)
class Kept:
    """What the rewrite goes by."""

    backward: Place


def kept_constant(scene: Scene) -> Finding[Kept | None] | None:
    """What another run of the cell has shown; None where it has shown nothing."""
    shown: tuple[IgnoredGradient, ...] = scene.incident.evidence.get("ignored", ())
    for found in (f for f in shown if f.second):
        source = scene.program.source(found.function.filename)
        backward = None if source is None else function_at(source, found.function.line)
        owner = None if source is None or backward is None else source.parents.get(backward)
        if source is not None and backward is not None and isinstance(owner, ast.ClassDef):
            return _told(scene, found, source, owner, backward)
    return None


def _told(
    scene: Scene,
    found: IgnoredGradient,
    source: Source,
    owner: ast.ClassDef,
    backward: ast.FunctionDef,
) -> Finding[Kept | None]:
    kept = dict(_kept(owner))
    place = source.place(backward.lineno, backward.name, backward)
    statement = next(iter(kept.values()), None)
    at = place if statement is None else source.place(statement.lineno, "forward", statement)
    failed = event(scene, What.FAILED, "backward")
    names = tuple(dict.fromkeys((*kept, owner.name, *found.leaves)))[:_NAMES]
    return Finding(
        cause="no_second_derivative",
        confidence=Confidence.PROVEN,
        facts={"function": owner.name, "kept": next(iter(kept), ""), "where": label(at)},
        tensors=(TensorFact(Role.CULPRIT, names),),
        events=(
            Event(What.CAUSE, at, certainty=Certainty.OBSERVED),
            *(() if failed is None else (failed,)),
        ),
        variant="kept",
        details=Kept(place),
    )


def _kept(owner: ast.ClassDef) -> Iterator[tuple[str, ast.stmt]]:
    """What `forward` keeps of what it has computed in between, and by which statement."""
    forward = next((n for n in owner.body if getattr(n, "name", "") == "forward"), None)
    if not isinstance(forward, ast.FunctionDef):
        return
    ctx, *given = positional_parameters(forward) or [""]
    returned = [n.value for n in ast.walk(forward) if isinstance(n, ast.Return)]
    known = {*given, *(n.id for v in returned if v for n in _parts(v) if isinstance(n, ast.Name))}
    for node in ast.walk(forward):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            saves = called_name(node.value) == "save_for_backward"
            for part in node.value.args if saves else ():
                if _is_computed(part, known):
                    yield ast.unparse(part), node
        for target in node.targets if isinstance(node, ast.Assign) else ():
            kept = isinstance(target, ast.Attribute) and ast.unparse(target.value) == ctx
            if kept and isinstance(node, ast.Assign) and _is_computed(node.value, known):
                yield ast.unparse(target), node


def _parts(value: ast.expr) -> list[ast.expr]:
    return value.elts if isinstance(value, ast.Tuple) else [value]


def _is_computed(value: ast.expr, known: set[str]) -> bool:
    if isinstance(value, ast.Name):
        return value.id not in known
    return isinstance(value, (ast.Call, ast.BinOp)) and last_name(value) not in ("shape", "size")
