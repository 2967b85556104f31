"""A second derivative that is not available."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = (
    "once-differentiable-twice",
    "compile-double-backward",
    "cudnn-rnn-double-backward",
    "max-pool-double",
)

EXAMPLE: dict[str, str] = {}

VARIANTS = {
    "once-differentiable-twice": "once",
    "compile-double-backward": "compiled",
    "cudnn-rnn-double-backward": "cudnn",
}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "no_second_derivative", EXAMPLE, VARIANTS, at=None)
