"""A tensor made in inference mode was used where autograd works."""

from autograd_explain.inspect.facts.expressions import event_at, place_of, places_at
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.overwrite import label
from autograd_explain.inspect.facts.torch_call import maker, tensor_fact
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, What

from .inference import inference_mode, inference_tensors

PATTERNS = (
    "inference-saved-for-backward",
    "inference-inplace-outside",
    "inference-no-version-counter",
    "inference-requires-grad-outside",
    "inference-set-version-counter",
)

EXAMPLE = {
    "place": "In[2]:1",
    "tensor": "features",
    "maker": "torch.relu(backbone(x))",
    "mode": "torch.inference_mode()",
    "use": "loss = head(features).square().mean()",
    "use_place": "In[3]:1",
}

_VARIANTS = {
    "inference-inplace-outside": "written",
    "inference-requires-grad-outside": "flag",
    "inference-no-version-counter": "counter",
    "inference-set-version-counter": "counter",
}


def diagnose(scene: Scene) -> Finding | None:
    found = next(inference_tensors(scene), None)
    if found is None:  # the message leaves no doubt, but the tensor has no name
        return finding_from_message(scene, "inference_tensor", EXAMPLE, _VARIANTS)
    shown, tensor = found
    made, place = maker(scene, shown), scene.place
    mode, around = inference_mode(scene, shown)
    fact = tensor_fact(scene, tensor, shown.text)
    return finding_from_message(
        scene,
        "inference_tensor",
        EXAMPLE,
        facts={
            "tensor": shown.text,
            "maker": "" if made is None else made.text,
            "mode": mode.text if mode is not None and around else "",
            "place": label(place_of(scene, mode)) if around else "",
            "use": "" if place is None else place.source,
            "use_place": label(place),
        },
        at=mode or shown,
        op="mode" if mode is not None else "unknown",
        variant=_VARIANTS.get(scene.match.pattern, ""),
        confidence=Confidence.PROVEN,
        tensors=(fact,),
        more=() if made is None else (event_at(scene, What.CREATED, made, "inference"),),
        places=places_at(scene, use=shown),
    )
