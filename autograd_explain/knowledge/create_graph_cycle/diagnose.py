"""`backward(create_graph=True)` leaves gradients that hold their parameters, and the other way."""

from dataclasses import dataclass

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import calls_in, failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role, TensorFact

PATTERNS = ("create-graph-reference-cycle",)

EXAMPLE = {
    "place": "In[2]:4",
    "root": "loss",
    "call": "loss.backward(create_graph=True)",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    again: bool  #: another backward or grad may need the graph


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene, "backward")
    if call is None:
        return None
    root = call.receiver
    again = _differentiated_again(scene, call)
    return finding_from_message(
        scene,
        "create_graph_cycle",
        EXAMPLE,
        facts={"root": "" if root is None else root.text, "call": call.text},
        at=call,
        variant="again" if again else "",
        confidence=Confidence.PROVEN if call.argument(9, "create_graph") else Confidence.LIKELY,
        tensors=(TensorFact(Role.ROOT, ("" if root is None else root.text,)),),
    ).with_details(Details(again))


def _differentiated_again(scene: Scene, call: ExprAt) -> bool:
    """Whether the program has another backward or grad, which may need the graph."""
    return any(s.node is not call.node for s in calls_in(scene, "backward", "grad"))
