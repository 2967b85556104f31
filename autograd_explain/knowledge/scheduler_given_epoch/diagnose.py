"""A learning-rate scheduler's step was told the epoch."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role, TensorFact

PATTERNS = ("lr-scheduler-epoch-deprecated",)

EXAMPLE = {
    "place": "In[2]:6",
    "scheduler": "scheduler",
    "epoch": "epoch + 1",
}


def diagnose(scene: Scene) -> Finding | None:
    call = failing_call(scene, "step")
    owner, epoch = call and call.receiver, call and call.argument(0, "epoch")
    if owner is None or epoch is None:
        return None
    return finding_from_message(
        scene,
        "scheduler_given_epoch",
        EXAMPLE,
        facts={"scheduler": owner.text, "epoch": epoch.text},
        at=call,
        confidence=Confidence.PROVEN,
        tensors=(TensorFact(Role.CULPRIT, (owner.text,)),),
    )
