"""`torch.autograd.functional` got a function or an input that it cannot take."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = (
    "functional-arg-type",
    "functional-arg-element-type",
    "functional-output-type",
    "functional-output-element-type",
    "functional-hessian-single-element",
    "functional-hessian-single-tensor",
    "functional-vjp-v-none",
    "functional-jvp-v-none",
    "functional-v-size",
    "functional-v-length",
    "functional-v-single",
    "functional-strict-vectorize",
    "functional-forward-mode-vectorize",
)

EXAMPLE = {
    "place": "In[1]:6",
    "api": "jacobian",
    "function": "trajectory",
    "given": "0.5",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    number: bool  #: a number was given for a tensor


_WITH_VECTOR = ("vjp", "jvp", "hvp", "vhp")


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene, "jacobian", "hessian", "vjp", "jvp", "hvp", "vhp")
    if call is None:
        return None
    function, given = call.argument(0, "func"), call.argument(1, "inputs")
    pattern = scene.match.pattern
    kind = scene.match.captures.get("type", "")
    inputs = pattern.startswith("functional-arg") and _is_about_inputs(scene)
    number = (
        inputs and pattern == "functional-arg-type" and any(t in kind for t in ("float", "int"))
    )
    variant = "" if inputs else _variant(pattern)
    vector = call.argument(2, "v") if variant == "vector" and call.called in _WITH_VECTOR else None
    return finding_from_message(
        scene,
        "functional_argument",
        EXAMPLE,
        facts={
            "api": scene.match.captures.get("api", call.called),
            "function": "" if function is None else function.text,
            "given": "" if given is None else given.text,
        },
        at=given if inputs else (vector or function or call),
        variant=variant,
        confidence=Confidence.PROVEN if given is not None else Confidence.LIKELY,
    ).with_details(Details(number=number and given is not None))


def _is_about_inputs(scene: Scene) -> bool:
    """Whether the message is about what the function is called with, not about `v`."""
    return scene.match.captures.get("argument", "inputs") == "inputs"


def _variant(pattern: str) -> str:
    if pattern.startswith("functional-hessian"):
        return "hessian"
    return "output" if pattern.startswith("functional-output") else "vector"
