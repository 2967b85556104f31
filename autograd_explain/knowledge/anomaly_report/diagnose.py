"""What anomaly mode prints: that it is on, and the forward line of a failing backward step."""

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding

PATTERNS = ("anomaly-enabled", "anomaly-traceback", "anomaly-no-forward-info", "anomaly-induced")

EXAMPLE = {"op": ""}

VARIANTS = {
    "anomaly-enabled": "enabled",
    "anomaly-traceback": "trace",
    "anomaly-no-forward-info": "nothing",
}


def diagnose(scene: Scene) -> Finding | None:
    if scene.match.pattern != "anomaly-enabled":
        return None  # the error that follows is explained, with this very line
    return finding_from_message(scene, "anomaly_report", EXAMPLE, VARIANTS)
