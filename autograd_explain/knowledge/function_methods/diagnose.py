"""A custom Function lacks a method that this kind of differentiation needs."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.user_definitions import functions
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = (
    "function-no-backward",
    "function-no-forward",
    "function-no-jvp",
    "function-setup-context-missing",
    "function-backward-and-vjp",
    "function-boxed-grads-not-bool",
    "function-anomaly-metadata",
    "cpp-function-jvp",
)

EXAMPLE = {"function": "Snap"}


def diagnose(scene: Scene) -> Finding | None:
    if scene.match.pattern != "function-no-backward":
        return finding_from_message(scene, "function_methods", EXAMPLE, at=None)
    lacking = [c for c in functions(scene) if not _has_backward(c)]
    cls = lacking[0] if len(lacking) == 1 else None
    forward = scene.index.method(cls, "forward")
    return finding_from_message(
        scene,
        "function_methods",
        EXAMPLE,
        facts={"function": "" if cls is None else cls.__name__},
        at=None if forward is None else forward.place,
        variant="backward",
        confidence=Confidence.PROVEN if cls is not None else Confidence.LIKELY,
    )


def _has_backward(cls: type) -> bool:
    return any(
        name in vars(owner)
        for owner in cls.__mro__
        if owner.__module__ != "torch.autograd.function"
        for name in ("backward", "vjp")
    )
