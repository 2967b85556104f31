"""An optimizer got a learning rate (or another option) out of its range."""

import ast
from dataclasses import dataclass

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("optimizer-invalid-learning-rate",)

EXAMPLE = {
    "place": "In[1]:5",
    "rate": "-0.05",
    "given": "-0.05",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    positive: str  #: the rate without its sign, "" where that is not written there


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene)
    given = call and call.argument(1, "lr")
    node = None if given is None else given.node
    literal = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    return finding_from_message(
        scene,
        "negative_learning_rate",
        EXAMPLE,
        facts={
            "rate": scene.match.captures.get("lr", ""),
            "given": "" if given is None else given.text,
        },
        at=call,
        confidence=Confidence.PROVEN if given is not None else Confidence.LIKELY,
    ).with_details(Details(given.text.lstrip("- ") if given is not None and literal else ""))
