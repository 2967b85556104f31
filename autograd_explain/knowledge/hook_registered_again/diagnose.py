"""Every round registers the same hook once more on a parameter or a module: all of them are called,
and gradients are other than with one."""

from __future__ import annotations

import ast
from types import CodeType
from typing import TYPE_CHECKING

import torch

from autograd_explain.arguments import positional_parameters
from autograd_explain.inspect.facts.silent_evidence import culprit, event, name_of
from autograd_explain.inspect.facts.user_hooks import registrations
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Certainty, Confidence, Event, Finding, What, label
from autograd_explain.program import last_name
from autograd_explain.program_index import Definition

if TYPE_CHECKING:
    from autograd_explain.record.detect.piled_hooks import Piled

PATTERNS = ("hook-registered-again",)

EXAMPLE = {
    "parameter": "model[0].weight",
    "registered": "model[0].weight.register_hook(lambda g: 0.5 * g)",
    "place": "In[2]:3",
    "times": "3",
}

_LOGS = frozenset("append add extend update put write add_scalar add_histogram".split())


def diagnose(scene: Scene) -> Finding[None] | None:
    found = _piled(scene)
    failed = event(scene, What.FAILED, "backward")
    registered = None if found is None else next(registrations(scene.program, found[1]), None)
    if found is None or registered is None or failed is None:
        return None
    at, written = registered
    piled, _ = found
    owner = piled.owner()
    parameter = owner if is_a(owner, torch.Tensor) else None
    name = _module_name(scene, owner, written) if parameter is None else name_of(scene, parameter)
    return Finding(
        cause="hook_registered_again",
        confidence=Confidence.PROVEN,
        facts={
            "parameter": name,
            "registered": at.source,
            "place": label(at),
            "times": str(piled.times),
        },
        tensors=(culprit(scene, parameter, name, written),),
        events=(Event(What.CAUSE, at, certainty=Certainty.INFERRED), failed),
    )


def _piled(scene: Scene) -> tuple[Piled, Definition] | None:
    """What is to blame, where gradients are other than with one hook of each code: another run of
    the cell tells, as a mask that is put on twice makes no difference.  Of several, and where
    nothing was run, a hook that gives another value."""
    evidence = scene.incident.evidence
    differences = evidence.get("gradients")
    every: dict[CodeType, Piled] = {piled.code: piled for piled in reversed(evidence["piled"])}
    known = [(p, d) for c, p in every.items() if (d := scene.index.definition_of(c)) is not None]
    if differences is None or len(every) > 1:
        known = [(piled, hook) for piled, hook in known if _gives_another(hook)]
    return next(iter(known), None) if differences is None or differences else None


def _module_name(scene: Scene, module: object, written: str) -> str:
    """The name of a module; where none leads to it, what the source calls it."""
    held = scene.names.held_modules
    return next((name for name, other in held if other is module), written)


def _gives_another(hook: Definition) -> bool:
    """Whether a hook hands back what it computes of the gradient, not only logs it."""
    given = positional_parameters(hook.node)[:1]
    return any(_is_computed(node, given) for node in hook.returned)


def _is_computed(node: ast.expr, given: list[str]) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        logs = isinstance(function, ast.Name) or last_name(function) in _LOGS
        return not logs and any(getattr(n, "id", "") in given for n in ast.walk(node))
    if isinstance(node, ast.Tuple):
        return any(_is_computed(part, given) for part in node.elts)
    return isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Name, ast.IfExp, ast.Subscript))
