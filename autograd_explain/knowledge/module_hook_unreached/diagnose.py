"""A module's backward hook that gradients do not reach."""

import ast
from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.expressions import computation
from autograd_explain.inspect.facts.finding_from_message import failing_place, finding_from_message
from autograd_explain.inspect.facts.torch_call import backward_roots
from autograd_explain.inspect.facts.user_hooks import ModuleHook, full_backward_hooks
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Event, Finding, Place, Role, TensorFact, What, label

PATTERNS = (
    "module-hook-output-not-tensor",
    "module-hook-no-input-grad",
    "module-hook-no-tensor-input",
)

EXAMPLE = {
    "type": "",
    "module": "net[0]",
    "registered": "net[0].register_full_backward_hook(watch)",
    "registered_place": "In[1]:12",
}

VARIANTS = {
    "module-hook-output-not-tensor": "output",
    "module-hook-no-input-grad": "input",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by: the hook, where one line registers it, and the batch that the model
    around its module is called with."""

    hook: ModuleHook | None = None
    batch: Place | None = None


def diagnose(scene: Scene) -> Finding[Details] | None:
    if scene.match.pattern != "module-hook-no-input-grad":
        found = finding_from_message(
            scene, "module_hook_unreached", EXAMPLE, VARIANTS, at=failing_place(scene)
        )
        return found.with_details(Details())
    hooks = full_backward_hooks(scene.program)
    hook = hooks[0] if len(hooks) == 1 else None
    module = None if hook is None else _module(scene, hook)
    named = (n for n, m in scene.names.held_modules if m is module)
    names = [n for n in named if not n.startswith("self.")]
    batch = _batch(scene, module)
    registered = () if hook is None else (Event(What.CAUSE, hook.place),)
    # One that reads the input's gradient is right where it is: the batch lacks the flag.
    blamed = batch if hook is not None and not hook.looks else None
    asked_of = [b.text for b in (batch,) if b is not None]
    culprits = names[:1] or asked_of if blamed is None else [*asked_of, *names[:1]]
    found = finding_from_message(
        scene,
        "module_hook_unreached",
        EXAMPLE,
        facts={
            "type": "",
            "module": names[0] if names else "",
            "registered": "" if hook is None else hook.place.source,
            "registered_place": "" if hook is None else label(hook.place),
        },
        at=blamed,
        more=registered,
        tensors=(TensorFact(Role.CULPRIT, tuple(culprits)),) if culprits else (),
        variant="of_module" if names and hook is not None else "input",
    )
    asked = None if batch is None else scene.slicer.place(batch)
    return found.with_details(Details(hook, asked))


def _module(scene: Scene, hook: ModuleHook) -> torch.nn.Module | None:
    """What the hook was registered on; None in a loop, where it may be any of several."""
    source, node = scene.program.source_at(hook.place), scene.program.expression_at(hook.place)
    if source is None or node is None or any(isinstance(n, ast.For) for n in source.around(node)):
        return None
    owner = scene.slicer.at(source, node).receiver
    value = None if owner is None else scene.slicer.value(owner)
    return value if isinstance(value, torch.nn.Module) else None


def _batch(scene: Scene, module: torch.nn.Module | None) -> ExprAt | None:
    """The first argument of the only call of a module that has this one in it, where that is a
    tensor of numbers that may require grad and does not; of the only module that the failing
    backward's root is computed by, where the hook may be on any of several."""
    around = [m for _, m in scene.names.held_modules]
    if module is None:
        roots = backward_roots(scene)
        behind = [s for root in roots[:1] for s in computation(scene, root)]
        calls = [s for s in behind if isinstance(s.node, ast.Call)]
    else:
        around = [m for m in around if any(c is module for c in m.modules())]
        calls = [scene.slicer.at(source, call) for source, call in scene.index.nodes(ast.Call)]
    found: dict[Place, ExprAt] = {}
    for spot in calls:
        owner = MISSING if spot.callable is None else scene.slicer.value(spot.callable)
        given = spot.argument(0)
        if given is not None and any(owner is m for m in around) and _may_require(scene, given):
            found[scene.slicer.place(given)] = given
    return next(iter(found.values())) if len(found) == 1 else None


def _may_require(scene: Scene, given: ExprAt) -> bool:
    value = scene.slicer.tensor(given)
    plain = is_a(value, torch.Tensor) and value.is_leaf and not value.requires_grad
    return given.key is not None and plain and value.is_floating_point()
