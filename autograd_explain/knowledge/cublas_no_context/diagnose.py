"""cuBLAS was called first in a thread of backward, which had no CUDA context yet."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("cublas-no-context",)

EXAMPLE = {"place": "In[4]:7"}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(
        scene, "cublas_no_context", EXAMPLE, at=None, confidence=Confidence.GENERAL
    )
