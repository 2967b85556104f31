"""Parameters or options that an optimizer does not take."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = (
    "optimizer-params-set",
    "optimizer-param-group-type",
    "optimizer-required-missing",
    "optimizer-named-params-mixed",
    "optimizer-groups-named-mixed",
    "optimizer-nesterov",
    "optimizer-weight-decay-sparse",
    "optimizer-tensor-lr-foreach",
    "optimizer-step-hook-result",
    "clip-grad-empty-generator",
)

EXAMPLE = {
    "type": "list",
    "parameter": "lr",
}

VARIANTS = {
    "optimizer-param-group-type": "group",
    "optimizer-required-missing": "required",
}


def diagnose(scene: Scene) -> Finding | None:
    return finding_from_message(scene, "optimizer_options", EXAMPLE, VARIANTS)
