"""gradcheck disagrees with a gradient."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "gradcheck-jacobian-mismatch",
    "gradcheck-forward-mismatch",
    "gradcheck-complex-mismatch",
    "gradcheck-grad-output-ignored",
    "gradcheck-expected-zero",
    "gradcheck-undefined-grads",
    "gradcheck-gradient-dtype",
    "gradcheck-gradient-size",
    "gradcheck-grad-kind",
    "gradcheck-grad-layout",
    "gradcheck-tangent-dtype",
    "gradcheck-batched-mismatch",
    "gradcheck-batched-forward-mismatch",
    "gradcheck-batched-error",
    "gradcheck-overlapping-input",
    "gradcheck-not-double",
    "gradcheck-not-reentrant",
    "gradcheck-no-input-requires-grad",
)

EXAMPLE = {
    "output": "0",
    "input": "0",
    "index": "",
    "error": "",
}

VARIANTS = {
    "gradcheck-jacobian-mismatch": "mismatch",
    "gradcheck-forward-mismatch": "forward",
    "gradcheck-complex-mismatch": "mismatch",
    "gradcheck-grad-output-ignored": "ignored",
    "gradcheck-expected-zero": "cut",
    "gradcheck-undefined-grads": "undefined",
    "gradcheck-overlapping-input": "overlap",
    "gradcheck-gradient-dtype": "kind",
    "gradcheck-gradient-size": "kind",
    "gradcheck-grad-kind": "kind",
    "gradcheck-grad-layout": "kind",
    "gradcheck-tangent-dtype": "kind",
    "gradcheck-batched-mismatch": "batched",
    "gradcheck-batched-forward-mismatch": "batched",
    "gradcheck-batched-error": "batched_error",
    "gradcheck-not-double": "precision",
    "gradcheck-not-reentrant": "repeat",
    "gradcheck-no-input-requires-grad": "nothing",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "gradcheck_failed", EXAMPLE, VARIANTS)
