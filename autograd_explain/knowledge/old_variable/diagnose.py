"""Names and arguments of torch before 0.4: Variable, volatile, reinforce."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = (
    "volatile-set",
    "variable-data-not-tensor",
    "volatile-read",
    "volatile-and-requires-grad",
    "autograd-variable-function",
    "variable-grad-fn-argument",
    "reinforce-removed",
)

EXAMPLE = {
    "place": "In[2]:1",
    "call": "Variable(batch, volatile=True)",
    "data": "batch",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    data: str  #: "" where it is not known
    number: bool


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene)
    data = call and call.argument(0, "data")
    pattern = scene.match.pattern
    number = pattern == "variable-data-not-tensor"
    return finding_from_message(
        scene,
        "old_variable",
        EXAMPLE,
        facts={
            "call": "" if call is None else call.text,
            "data": "" if data is None else data.text,
        },
        at=call,
        variant="data" if number else ("reinforce" if "reinforce" in pattern else ""),
        confidence=Confidence.PROVEN if call is not None else Confidence.LIKELY,
    ).with_details(Details("" if call is None or data is None else data.text, number))
