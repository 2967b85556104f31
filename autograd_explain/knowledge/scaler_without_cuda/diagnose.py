"""A GradScaler for CUDA was made where there is none."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("gradscaler-cuda-unavailable",)

EXAMPLE = {
    "place": "In[1]:7",
    "call": 'torch.amp.GradScaler("cuda")',
}


def diagnose(scene: Scene) -> Finding | None:
    call = failing_call(scene, "GradScaler")
    if call is None:
        return None
    return finding_from_message(
        scene,
        "scaler_without_cuda",
        EXAMPLE,
        facts={"call": call.text},
        at=call,
        confidence=Confidence.PROVEN,
    )
