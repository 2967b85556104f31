"""`.grad` was read of an intermediate result, which backward does not keep."""

from autograd_explain.inspect.facts.grad_access import (
    is_started_from,
    non_leaf_read,
    told,
    unseen_read,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, What, label

PATTERNS = ("nonleaf-grad-access", "grad-none-arithmetic", "grad-none-attribute")

EXAMPLE = {
    "tensor": "net.hidden",
    "maker": "torch.tanh(self.inner(x))",
    "place": "In[1]:13",
    "node": "TanhBackward0",
}


def diagnose(scene: Scene) -> Finding | None:
    found = non_leaf_read(scene)
    if found is None:
        return _from_source(scene)
    if found.lost_leaf or found.renamed_leaf:
        return None
    facts, made = told(scene, found)
    culprit, maker = facts[0], found.maker
    return Finding(
        cause="intermediate_grad",
        confidence=Confidence.PROVEN,
        facts={
            "tensor": culprit.names[0] if culprit.names else "",
            "maker": "" if maker is None else maker.text,
            "place": "" if maker is None else label(scene.place_at(maker)),
            "node": culprit.grad_fn or "",
        },
        tensors=facts,
        events=(*made, scene.failed()),
        variant="root" if is_started_from(scene, found) else "",
    )


def _from_source(scene: Scene) -> Finding | None:
    """The warning alone says that it is a result; the source may show of what."""
    read = unseen_read(scene)
    if read is None:
        return None
    tensor, maker = read
    made = () if maker is None else (scene.event_at(What.CAUSE, maker),)
    return Finding(
        cause="intermediate_grad",
        confidence=Confidence.GENERAL if maker is None else Confidence.LIKELY,
        facts={
            "tensor": tensor.names[0],
            "maker": "" if maker is None else maker.text,
            "place": "" if maker is None else label(scene.place_at(maker)),
            "node": "",
        },
        tensors=(tensor,),
        events=(*made, scene.failed()),
    )
