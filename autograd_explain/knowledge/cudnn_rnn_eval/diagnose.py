"""Backward through a cuDNN recurrent layer in evaluation mode."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = ("cudnn-rnn-training-mode",)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "cudnn_rnn_eval", EXAMPLE, at=None)
