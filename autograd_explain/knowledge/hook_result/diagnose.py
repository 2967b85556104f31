"""A hook returned something that is no gradient."""

from dataclasses import dataclass

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.user_definitions import returned_by
from autograd_explain.inspect.facts.user_hooks import hook_named
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding, Role, TensorFact

PATTERNS = (
    "hook-returns-non-tensor",
    "hook-changes-size",
    "hook-changes-type",
    "node-hook-wrong-count",
    "node-hook-returns-non-tuple",
    "node-hook-replaces-none",
    "post-accumulate-hook-returns",
    "module-hook-wrong-count",
    "module-prehook-wrong-count",
    "module-hook-no-input-grad-returns",
)

EXAMPLE = {
    "hook": "average",
    "type": "",
    "expected": "",
    "count": "",
    "gradient": "grad",
}

VARIANTS = {
    "hook-returns-non-tensor": "kind",
    "hook-changes-size": "size",
    "hook-changes-type": "type",
    "node-hook-wrong-count": "count",
    "module-hook-wrong-count": "count",
    "module-prehook-wrong-count": "count",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    gradient: str
    size: bool  #: what is wrong is the shape
    number: bool  #: a number for somebody to read


def diagnose(scene: Scene) -> Finding[Details] | None:
    name = scene.match.captures.get("hook", "")
    hook = hook_named(scene.program, name)
    names = () if hook is None else (*hook.tensors, hook.gradient)
    told = finding_from_message(
        scene,
        "hook_result",
        EXAMPLE,
        VARIANTS,
        at=returned_by(scene.program, name) if hook is None else hook.returned,
        facts={"gradient": "" if hook is None else hook.gradient},
        tensors=(TensorFact(Role.CULPRIT, tuple(n for n in names if n)),) if names else (),
    )
    number = told.variant == "kind" and told.facts["type"] in _NUMBERS
    return told.with_details(Details(told.facts["gradient"], told.variant == "size", number))


#: What can be meant for somebody to read, never for the place of a gradient.
_NUMBERS = ("float", "int", "str", "bool", "list", "dict")
