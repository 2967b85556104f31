"""Strict mode of the functional Jacobians."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "functional-strict-independent",
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
    return told(scene, "strict_jacobian", EXAMPLE, VARIANTS)
