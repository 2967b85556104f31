"""A saved optimizer state belongs to other parameter groups than the optimizer has."""

from typing import Any

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call, local
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role, TensorFact

PATTERNS = ("optimizer-load-state-group-size", "optimizer-load-state-groups")

EXAMPLE = {
    "place": "In[3]:2",
    "optimizer": "optimizer",
    "state": 'checkpoint["optimizer"]',
    "have": "2",
    "saved": "4",
    "group": "0",
}


def diagnose(scene: Scene) -> Finding | None:
    groups: Any = local(scene, "load_state_dict", "groups", "torch/optim/optimizer.py")
    saved: Any = local(scene, "load_state_dict", "saved_groups", "torch/optim/optimizer.py")
    if not isinstance(groups, list) or not isinstance(saved, list):
        return None
    call = failing_call(scene, "load_state_dict")
    owner, state = call and call.receiver, call and call.argument(0, "state_dict")
    index, have, had = _difference(groups, saved)
    return finding_from_message(
        scene,
        "optimizer_state_of_another_model",
        EXAMPLE,
        facts={
            "optimizer": "" if owner is None else owner.text,
            "state": "" if state is None else state.text,
            "have": str(have),
            "saved": str(had),
            "group": str(index),
        },
        at=call,
        variant="groups" if len(groups) != len(saved) else "",
        confidence=Confidence.PROVEN,
        tensors=(TensorFact(Role.CULPRIT, ("" if owner is None else owner.text,)),),
    )


def _difference(groups: list[Any], saved: list[Any]) -> tuple[int, int, int]:
    """Which group differs, how many parameters it has and had; counts of groups where those do."""
    if len(groups) != len(saved):
        return 0, len(groups), len(saved)
    for i, (group, old) in enumerate(zip(groups, saved, strict=True)):
        have, had = len(group["params"]), len(old["params"])
        if have != had:
            return i, have, had
    return 0, 0, 0
