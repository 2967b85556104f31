"""gradcheck disagrees with a gradient."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "gradcheck-jacobian-mismatch",
    "gradcheck-not-double",
    "gradcheck-not-reentrant",
    "gradcheck-no-input-requires-grad",
)

EXAMPLE = {
    "output": "0",
    "input": "0",
    "index": "",
}

VARIANTS = {
    "gradcheck-jacobian-mismatch": "mismatch",
    "gradcheck-not-double": "precision",
    "gradcheck-not-reentrant": "repeat",
    "gradcheck-no-input-requires-grad": "nothing",
}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "gradcheck_failed", EXAMPLE, VARIANTS)
