"""`.grad` was read of an intermediate result, which backward does not keep."""

from autograd_explain.inspect.attribution import label
from autograd_explain.inspect.grad_access import non_leaf_read
from autograd_explain.inspect.non_leaf import events, fact
from autograd_explain.inspect.origin import place_of
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding

PATTERNS = ("nonleaf-grad-access", "grad-none-arithmetic", "grad-none-attribute")

EXAMPLE = {
    "tensor": "net.hidden",
    "maker": "torch.tanh(self.inner(x))",
    "place": "In[1]:13",
    "node": "TanhBackward0",
}


def diagnose(scene: Scene) -> Finding | None:
    found = non_leaf_read(scene)
    if found is None or found.lost_leaf or found.renamed_leaf:
        return None
    culprit = fact(scene, found)
    maker = found.maker
    return Finding(
        cause="intermediate_grad",
        confidence=Confidence.PROVEN,
        facts={
            "tensor": culprit.names[0] if culprit.names else "",
            "maker": "" if maker is None else maker.text,
            "place": "" if maker is None else label(place_of(scene, maker)),
            "node": culprit.grad_fn or "",
        },
        tensors=(culprit,),
        events=(*events(scene, found, culprit.grad_fn), scene.failed()),
        variant="root" if tensor_is_root(culprit.shape) else "",
    )


def tensor_is_root(shape: tuple[int, ...] | None) -> bool:
    """A loss is what backward starts from; the gradient at it is the 1 that it was given."""
    return shape == ()
