"""Every round registers the same hook once more on a parameter: all of them change its gradient."""

import ast
from collections.abc import Iterator

from autograd_explain.arguments import positional_parameters
from autograd_explain.inspect.facts.silent_evidence import culprit, event, name_of, tensors
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Certainty, Confidence, Event, Finding, Place, What, label
from autograd_explain.program import last_name
from autograd_explain.program_index import Definition

PATTERNS = ("hook-registered-again",)

EXAMPLE = {
    "parameter": "model[0].weight",
    "registered": "model[0].weight.register_hook(lambda g: 0.5 * g)",
    "place": "In[2]:3",
    "times": "3",
    "backward": "loss.backward()",
}

_LOGS = frozenset("append add extend update put write add_scalar add_histogram".split())


def diagnose(scene: Scene) -> Finding[None] | None:
    hook = scene.index.definition_of(scene.incident.evidence["hook"])
    if hook is None or not _gives_another(hook):
        return None
    registered = next(_registrations(scene, hook), None)
    failed = event(scene, What.FAILED, "backward")
    if registered is None or failed is None:
        return None
    at, owner = registered
    parameter = next(iter(tensors(scene, "parameters")), None)
    name = "" if parameter is None else name_of(scene, parameter)
    backward = None if failed.place is None else failed.place.source
    return Finding(
        cause="hook_registered_again",
        confidence=Confidence.PROVEN,
        facts={
            "parameter": name,
            "registered": at.source,
            "place": label(at),
            "times": str(scene.incident.evidence["times"]),
            "backward": backward or "",
        },
        tensors=(culprit(scene, parameter, owner),),
        events=(Event(What.CAUSE, at, certainty=Certainty.INFERRED), failed),
    )


def _gives_another(hook: Definition) -> bool:
    """Whether a hook hands back what it computes of the gradient, not only logs it."""
    given = positional_parameters(hook.node)[:1]
    return any(_is_computed(node, given) for node in hook.returned)


def _is_computed(node: ast.expr, given: list[str]) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        logs = isinstance(function, ast.Name) or last_name(function) in _LOGS
        return not logs and any(getattr(n, "id", "") in given for n in ast.walk(node))
    return isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Name, ast.IfExp, ast.Subscript))


def _registrations(scene: Scene, hook: Definition) -> Iterator[tuple[Place, str]]:
    """The calls that register it, and on what."""
    for source, call in scene.index.calls("register_hook", of="torch"):
        given = call.args[0] if call.args else None
        if given is hook.node or (given is not None and last_name(given) == hook.name):
            owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
            yield source.place(call.lineno, None, call), ast.unparse(owner)
