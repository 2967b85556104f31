"""Arguments and results of torch.func transforms."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "functorch-grad-nonscalar",
    "functorch-grad-nontensor",
    "functorch-grad-arg-type",
    "functorch-grad-aux",
    "functorch-vjp-aux",
    "functorch-vjp-int-output",
    "functorch-vjp-structure",
    "functorch-argnums-range",
    "functorch-argnums-type",
    "functorch-argnums-empty",
    "functorch-argnums-duplicate",
    "functorch-jacrev-complex",
    "functorch-jacrev-chunk-size",
    "functorch-output-not-tensor",
    "functorch-jvp-primals-tuple",
    "functorch-jvp-structure",
    "functorch-jvp-strict",
    "functorch-linearize-shape",
)

EXAMPLE = {
    "call": "grad(potential)(points)",
    "dims": "1",
    "type": "",
}

VARIANTS = {
    "functorch-grad-nonscalar": "nonscalar",
    "functorch-grad-nontensor": "nontensor",
    "functorch-grad-arg-type": "argument",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "func_arguments", EXAMPLE, VARIANTS)
