"""Direct access to a tensor's memory."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "numpy-conj-bit",
    "numpy-neg-bit",
    "numpy-subclass",
    "numpy-zerotensor",
    "apply-requires-grad",
    "map-requires-grad",
    "map2-requires-grad",
    "cuda-array-interface-requires-grad",
    "asarray-requires-grad-default",
    "delete-tensor-data",
    "parameter-detach-type",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "raw_data_access", EXAMPLE)
