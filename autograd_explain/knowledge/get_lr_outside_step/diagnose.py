"""`get_lr()` of a learning-rate scheduler was called by the program."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role, TensorFact

PATTERNS = ("lr-scheduler-get-lr",)

EXAMPLE = {
    "place": "In[2]:6",
    "scheduler": "scheduler",
}


def diagnose(scene: Scene) -> Finding | None:
    call = failing_call(scene, "get_lr")
    owner = call and call.receiver
    if call is None or owner is None:
        return None
    return finding_from_message(
        scene,
        "get_lr_outside_step",
        EXAMPLE,
        facts={"scheduler": owner.text},
        at=call,
        confidence=Confidence.PROVEN,
        tensors=(TensorFact(Role.CULPRIT, (owner.text,)),),
    )
