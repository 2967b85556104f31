"""Backward through a cuDNN recurrent layer in evaluation mode."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
from autograd_explain.model import Finding

PATTERNS = ("cudnn-rnn-training-mode",)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return told(scene, "cudnn_rnn_eval", EXAMPLE, at=None)
