"""Every round registers the same hook once more on a parameter or a module: all of them are called,
and gradients are other than with one."""

import ast

from autograd_explain.arguments import positional_parameters
from autograd_explain.inspect.facts.silent_evidence import culprit, event, name_of, tensors
from autograd_explain.inspect.facts.user_hooks import registrations
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Certainty, Confidence, Event, Finding, What, label
from autograd_explain.program import last_name
from autograd_explain.program_index import Definition

PATTERNS = ("hook-registered-again",)

EXAMPLE = {
    "parameter": "model[0].weight",
    "registered": "model[0].weight.register_hook(lambda g: 0.5 * g)",
    "place": "In[2]:3",
    "times": "3",
}

_LOGS = frozenset("append add extend update put write add_scalar add_histogram".split())


def diagnose(scene: Scene) -> Finding[None] | None:
    hook = scene.index.definition_of(scene.incident.evidence["hook"])
    if hook is None or not _matters(scene, hook):
        return None
    registered = next(registrations(scene.program, hook), None)
    failed = event(scene, What.FAILED, "backward")
    if registered is None or failed is None:
        return None
    at, owner = registered
    parameter = next(iter(tensors(scene, "parameters")), None)
    name = _module_name(scene, owner) if parameter is None else name_of(scene, parameter)
    return Finding(
        cause="hook_registered_again",
        confidence=Confidence.PROVEN,
        facts={
            "parameter": name,
            "registered": at.source,
            "place": label(at),
            "times": str(scene.incident.evidence["times"]),
        },
        tensors=(culprit(scene, parameter, name, owner),),
        events=(Event(What.CAUSE, at, certainty=Certainty.INFERRED), failed),
    )


def _module_name(scene: Scene, owner: str) -> str:
    """The module that has the hooks; where no name leads to it, what the source calls it."""
    known = [weak() for weak in scene.incident.evidence.get("modules", ())]
    held = scene.names.held_modules
    return next((name for name, module in held if any(module is m for m in known)), owner)


def _matters(scene: Scene, hook: Definition) -> bool:
    """Whether gradients are other than with one such hook, which another run of the cell tells; a
    mask that is put on twice makes no difference.  Where there was none, whether it is a hook that
    gives another value."""
    differences = scene.incident.evidence.get("gradients")
    return _gives_another(hook) if differences is None else bool(differences)


def _gives_another(hook: Definition) -> bool:
    """Whether a hook hands back what it computes of the gradient, not only logs it."""
    given = positional_parameters(hook.node)[:1]
    return any(_is_computed(node, given) for node in hook.returned)


def _is_computed(node: ast.expr, given: list[str]) -> bool:
    if isinstance(node, ast.Call):
        function = node.func
        logs = isinstance(function, ast.Name) or last_name(function) in _LOGS
        return not logs and any(getattr(n, "id", "") in given for n in ast.walk(node))
    if isinstance(node, ast.Tuple):
        return any(_is_computed(part, given) for part in node.elts)
    return isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Name, ast.IfExp, ast.Subscript))
