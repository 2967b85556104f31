"""`torch.autograd.functional` got a function or an input that it cannot take."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.inspect.torch_call import argument, failing_call
from autograd_explain.model import Confidence, Finding

PATTERNS = (
    "functional-arg-type",
    "functional-hessian-single-element",
    "functional-hessian-single-tensor",
    "functional-vjp-v-none",
    "functional-jvp-v-none",
    "functional-v-size",
    "functional-v-length",
    "functional-strict-vectorize",
    "functional-forward-mode-vectorize",
)

EXAMPLE = {
    "place": "In[1]:6",
    "api": "jacobian",
    "function": "trajectory",
    "given": "0.5",
}


def diagnose(scene: Scene) -> Finding | None:
    call = failing_call(scene, "jacobian", "hessian", "vjp", "jvp", "hvp", "vhp")
    if call is None:
        return None
    function, given = argument(call, 0, "func"), argument(call, 1, "inputs")
    pattern = scene.match.pattern
    kind = scene.match.captures.get("type", "")
    number = pattern == "functional-arg-type" and any(t in kind for t in ("float", "int"))
    return told(
        scene,
        "functional_argument",
        EXAMPLE,
        facts={
            "api": scene.match.captures.get("api", ""),
            "function": "" if function is None else function.text,
            "given": "" if given is None else given.text,
        },
        at=given if pattern == "functional-arg-type" else (function or call),
        op="tensor" if number and given is not None else None,
        variant=_variant(pattern),
        confidence=Confidence.PROVEN if given is not None else Confidence.LIKELY,
    )


def _variant(pattern: str) -> str:
    if pattern.startswith("functional-hessian"):
        return "hessian"
    return "" if pattern == "functional-arg-type" else "vector"
