"""A statement names a method of a tensor or an optimizer, without the brackets that call it."""

from autograd_explain.inspect.facts.silent_evidence import event, moment, name_of, tensors
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Certainty, Confidence, Finding, Role, TensorFact, What, label

PATTERNS = ("method-not-called",)

EXAMPLE = {"call": "loss.backward", "place": "In[2]:4"}

_KNOWN = frozenset({"backward", "step", "zero_grad"})


def diagnose(scene: Scene) -> Finding[None] | None:
    named = moment(scene, "named")
    told = event(scene, What.CAUSE, "named", Certainty.INFERRED)
    if named is None or told is None:
        return None
    waiting = tuple(name_of(scene, p) for p in tensors(scene, "parameters"))
    return Finding(
        cause="method_not_called",
        confidence=Confidence.PROVEN,
        facts={"call": named.place.source, "place": label(named.place)},
        tensors=(TensorFact(Role.CULPRIT, (*named.operands, *waiting)),),
        events=(told,),
        variant=named.op if named.op in _KNOWN else "",
        awaited=waiting[:1] if named.op == "backward" else (),
    )
