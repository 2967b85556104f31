"""Strict mode of the functional Jacobians."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "functional-strict-independent",
    "functional-strict-output-independent",
    "functional-strict-jacobian-independent",
    "functional-strict-hessian-independent",
    "functional-strict-hessian-of-input",
    "functional-strict-gradient-independent",
    "functional-strict-double-trick",
    "functional-strict-no-grad-output",
    "functional-strict-hessian",
    "functional-strict-create-graph",
    "cpp-unused-input",
)

EXAMPLE = {
    "output": "0",
    "input": "1",
}

VARIANTS = {
    "functional-strict-independent": "pair",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "strict_jacobian", EXAMPLE, VARIANTS)
