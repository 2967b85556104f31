"""Direct access to a tensor's memory."""

from autograd_explain.inspect.scene import Scene
from autograd_explain.inspect.told import told
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
    return told(scene, "raw_data_access", EXAMPLE)
