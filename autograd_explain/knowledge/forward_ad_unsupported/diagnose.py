"""An operation has no forward-mode derivative."""

from collections.abc import Iterator
from itertools import islice

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import failing_call, local
from autograd_explain.inspect.facts.value_names import stored_names
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Role, TensorFact

PATTERNS = (
    "forward-ad-not-implemented",
    "forward-ad-inplace-not-implemented",
    "forward-ad-out-function",
    "forward-ad-resize",
    "forward-ad-fallback",
)

EXAMPLE = {
    "place": "In[2]:2",
    "op": "_scaled_dot_product_flash_attention_for_cpu",
    "call": "scaled_dot_product_attention(x, x, x)",
}

#: The attention kernels that are one operation begin so.
_FUSED = "_scaled_dot_product"
#: The functions of torch's that start it, and what they call the tensors that they are given.
_GIVEN = {"_jvp_with_argnums": "flat_primals", "_jacfwd": "inputs"}
_SHOWN = 3  #: of the tensors that have a tangent


def diagnose(scene: Scene) -> Finding[bool] | None:
    call = failing_call(scene)
    op = scene.match.captures.get("op", "")
    return finding_from_message(
        scene,
        "forward_ad_unsupported",
        EXAMPLE,
        facts={
            "op": op,
            "call": "" if call is None else call.text,
        },
        at=call,
        confidence=Confidence.PROVEN if call is not None else Confidence.LIKELY,
        tensors=[TensorFact(Role.CULPRIT, n) for n in islice(_with_tangent(scene, call), _SHOWN)],
    ).with_details(op.startswith(_FUSED))


def _with_tangent(scene: Scene, call: ExprAt | None) -> Iterator[tuple[str, ...]]:
    """What forward mode started from, by its names: what a transform of torch.func's was given, or
    a Jacobian of torch.autograd.functional's, else the duals that the program made and that the
    failing call was computed from.  Names alone: the level that the tangents belonged to is over
    when the failure is looked at."""
    given = [local(scene, function, name) for function, name in _GIVEN.items()]
    known = next((tensors for tensors in given if tensors is not MISSING), None)
    if known is not None:
        yield from filter(None, map(scene.names.of, known))
    elif call is not None:
        duals = (s for s in computation(scene, call) if s.called == "make_dual")
        yield from filter(None, (stored_names(scene, s) for s in duals))
