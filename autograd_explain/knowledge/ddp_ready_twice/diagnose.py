"""A parameter's gradient became complete twice in one backward of DistributedDataParallel."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.checkpointed import reentrant_calls
from autograd_explain.inspect.facts.distributed import parameter_at
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place

PATTERNS = ("ddp-marked-ready-twice", "ddp-bucket-view-replaced", "ddp-create-graph")

EXAMPLE = {"parameter": "mix.bias"}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    checkpoints: tuple[Place, ...]  #: the reentrant ones


def diagnose(scene: Scene) -> Finding[Details] | None:
    captures = scene.match.captures
    name = captures.get("parameter") or parameter_at(scene, captures.get("index", ""))
    places = tuple(s.place(c.lineno, None, c) for s, c in reentrant_calls(scene.program))
    twice = scene.match.pattern == "ddp-marked-ready-twice"
    return finding_from_message(
        scene,
        "ddp_ready_twice",
        EXAMPLE,
        facts={"parameter": name},
        at=places[0] if places and twice else None,
        variant="named" if name and twice else "",
        confidence=Confidence.LIKELY,
    ).with_details(Details(places if twice else ()))
