"""`torch.autograd.grad` got something else than tensors to differentiate, or nothing."""

import ast
from dataclasses import dataclass
from enum import Enum

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role, TensorFact
from autograd_explain.program import called_name

PATTERNS = (
    "grad-input-not-tensor",
    "backward-empty-inputs",
    "grad-empty-inputs",
    "cpp-grad-empty-inputs",
    "backward-inputs-mapping",
    "grad-inputs-mapping",
    "backward-root-not-tensor",
    "engine-root-not-tensor",
    "engine-tensors-not-tuple",
)

EXAMPLE = {
    "place": "In[2]:2",
    "given": "net.named_parameters()",
    "type": "tuple",
}

_EMPTY = ("backward-empty-inputs", "grad-empty-inputs", "cpp-grad-empty-inputs")


class Tensors(Enum):
    """Where the tensors are that were meant."""

    PARAMETERS = "parameters"  #: what the module calls so, instead of names or a dict
    INNER = "inner"  #: in the generator that stands in a list of one


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    tensors: Tensors | None


def diagnose(scene: Scene) -> Finding[Details] | None:
    call = failing_call(scene, "grad", "backward")
    if call is None:
        return None
    given = call.argument(1 if call.called == "grad" else 99, "inputs")
    kind = scene.match.captures.get("type", "").rsplit(".", 1)[-1].strip("'<>")
    return finding_from_message(
        scene,
        "differentiated_no_tensors",
        EXAMPLE,
        facts={"given": "" if given is None else given.text, "type": kind.removeprefix("class '")},
        at=given or call,
        variant="empty" if scene.match.pattern in _EMPTY else "",
        confidence=Confidence.PROVEN if given is not None else Confidence.LIKELY,
        tensors=(TensorFact(Role.CULPRIT, ("" if given is None else given.text,)),),
    ).with_details(Details(None if given is None else _how(given)))


def _how(given: ExprAt) -> Tensors | None:
    node = given.node
    if called_name(node) in ("named_parameters", "state_dict"):
        return Tensors.PARAMETERS
    single = (
        node.elts[0] if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) == 1 else None
    )
    return Tensors.INNER if single is not None and called_name(single) == "parameters" else None
