"""Autograd's own methods inside a function transform."""

import ast

import torch

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.no_graph import find
from autograd_explain.inspect.facts.torch_call import backward_roots, failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role

PATTERNS = (
    "backward-inside-functorch",
    "backward-inside-vmap",
    "vmap-backward-engine",
    "functorch-requires-grad-inside",
    "functorch-retain-grad-inside",
    "functorch-saved-tensor-hooks",
    "no-grad-fn",
)

EXAMPLE = {
    "call": "torch.autograd.grad(height, t, create_graph=True)",
    "root": "height",
}

VARIANTS = {
    "functorch-saved-tensor-hooks": "hooks",
}


def diagnose(scene: Scene) -> Finding[None] | None:
    if scene.match.pattern == "no-grad-fn":
        return _unrecorded(scene)
    return finding_from_message(scene, "backward_in_transform", EXAMPLE, VARIANTS)


def _unrecorded(scene: Scene) -> Finding[None] | None:
    """A derivative asked of what `vmap`, `jvp` or `jacfwd` has wrapped: there autograd records
    nothing, which it says of a value that nobody detached."""
    call = failing_call(scene, "grad")
    wrapped = scene.roots[:1] and torch._C._functorch.is_functorch_wrapped_tensor(scene.roots[0])
    found = find(scene) if wrapped and call is not None else None
    if found is None or found.cut is not None or found.recording_off:
        return None
    roots = [r.text for r in backward_roots(scene) if isinstance(r.node, ast.Name)]
    return finding_from_message(
        scene,
        "backward_in_transform",
        EXAMPLE,
        facts={"root": found.root_text},
        tensors=(scene.fact(Role.CULPRIT, scene.roots[0], *roots),),
        variant="unrecorded",
        confidence=Confidence.PROVEN,
    )
