"""Code that runs inside a backward wrote the gradient it was handed, which others have as well."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autograd_explain.inspect.dataflow.reaching_definitions import head_of
from autograd_explain.inspect.facts.silent_evidence import event, moment, worst_difference
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import (
    Certainty,
    Confidence,
    Finding,
    Role,
    TensorFact,
    What,
    label,
)

from .handed import Handed, handed_at

if TYPE_CHECKING:
    from autograd_explain.verification import GradientDifference

PATTERNS = ("gradient-overwritten",)

EXAMPLE = {
    "function": "drop_first",
    "incoming": "g",
    "write": "g[:, 0] = 0",
    "place": "In[1]:11",
    "gradient": "skip.bias.grad",
    "wrong": "[0, -0.3484, -0.02929]",
    "right": "[0.2025, -0.3484, -0.02929]",
    "backward": "loss.backward()",
}
_NAMES = 5


@dataclass(frozen=True)
class Details:
    """What the rewrites go by; None where the gradient is not simply an argument."""

    handed: Handed | None


def diagnose(scene: Scene) -> Finding[Details] | None:
    write, worst = moment(scene, "changed"), worst_difference(scene)
    if write is None or worst is None:
        return None  # it changed no gradient but its own
    handed = handed_at(scene.program, write.place, write.target)
    changed = scene.event(What.CHANGED, write, certainty=Certainty.OBSERVED)
    failed = event(scene, What.FAILED, "backward")
    different: tuple[GradientDifference, ...] = scene.incident.evidence["gradients"]
    incoming = "" if handed is None else handed.incoming
    names = (*(_leaf(d.name) for d in different), incoming)
    return Finding(
        cause="gradient_overwritten",
        confidence=Confidence.PROVEN,
        facts={
            "function": _name(handed, write.place.function),
            "incoming": incoming or head_of(write.target),
            "write": write.place.source,
            "place": label(write.place),
            "gradient": worst.name,
            "wrong": worst.plain,
            "right": worst.reference,
            "backward": "" if failed is None or failed.place is None else failed.place.source,
        },
        tensors=(TensorFact(Role.CULPRIT, tuple(dict.fromkeys(n for n in names if n))[:_NAMES]),),
        events=tuple(e for e in (changed, failed) if e is not None),
        details=Details(handed),
    )


def _leaf(gradient: str) -> str:
    return gradient.removesuffix(".grad")


def _name(handed: Handed | None, function: str | None) -> str:
    if handed is None:
        return "lambda" if function == "<lambda>" else function or ""
    if isinstance(handed.function, ast.Lambda):
        return "lambda"
    owner = handed.source.parents.get(handed.function)
    within = f"{owner.name}." if isinstance(owner, ast.ClassDef) else ""
    return within + handed.function.name
