"""A second derivative that is not available."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "once-differentiable-twice",
    "compile-double-backward",
    "cudnn-rnn-double-backward",
    "max-pool-double",
    "scatter-double-backward",
)

EXAMPLE: dict[str, str] = {}

VARIANTS = {
    "once-differentiable-twice": "once",
    "compile-double-backward": "compiled",
    "cudnn-rnn-double-backward": "cudnn",
    "scatter-double-backward": "zeros",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "no_second_derivative", EXAMPLE, VARIANTS, at=None)
