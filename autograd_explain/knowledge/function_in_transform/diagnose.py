"""Custom Function without support for function transforms."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from autograd_explain.arguments import positional_parameters
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.finding_from_message import At, finding_from_message
from autograd_explain.inspect.facts.torch_call import local
from autograd_explain.inspect.facts.user_definitions import function_names
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding, Place, Role, TensorFact
from autograd_explain.program_index import Definition

PATTERNS = (
    "functorch-function-no-setup-context",
    "functorch-function-no-vmap",
    "functorch-function-both-vmap",
    "functorch-function-vmap-bad-return",
    "functorch-function-vmap-bad-out-dims",
)

EXAMPLE = {
    "function": "Softsign",
}

VARIANTS = {
    "functorch-function-no-setup-context": "setup",
    "functorch-function-no-vmap": "batching",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    function: str
    batching: bool  #: there is no rule for vmap
    forward: Place | None = None  #: the `forward` that takes the context and should not
    tensors: frozenset[str] = frozenset()  #: the parameters that were given tensors
    batched: bool = False  #: it ran under vmap
    #: Where it takes its context and no text of the program's defines it: the lines that ran.
    lines: tuple[Place, ...] = ()


def diagnose(scene: Scene) -> Finding[Details] | None:
    cls = _applied(scene)
    setup = VARIANTS.get(scene.match.pattern) == "setup"
    forward = scene.index.method(cls, "forward") if setup else None
    told = finding_from_message(
        scene,
        "function_in_transform",
        EXAMPLE,
        VARIANTS,
        facts={} if cls is None else {"function": cls.__name__},
        at=At.FAILING if forward is None else forward.place,
        tensors=() if cls is None else (TensorFact(Role.CULPRIT, function_names(scene, cls)),),
    )
    batching = told.variant == "batching"
    if forward is None or _in_forward_mode(scene):
        ran = scene.incident.user_frames if setup and cls is not None and forward is None else ()
        lines = tuple(p for live in ran if (p := scene.incident.place_of(live)) is not None)
        return told.with_details(Details(told.facts["function"], batching, lines=lines))
    tensors, batched = frozenset(_given_tensors(scene, forward)), _is_batched(scene)
    return told.with_details(
        Details(told.facts["function"], batching, forward.place, tensors, batched)
    )


def _applied(scene: Scene) -> type | None:
    """The Function that a transform could not run."""
    for function, name in (("apply", "cls"), ("custom_function_call_vmap", "autograd_function")):
        found = local(scene, function, name)
        if isinstance(found, type) and issubclass(found, torch.autograd.Function):
            return found
    return None


def _given_tensors(scene: Scene, forward: Definition) -> Iterator[str]:
    """The parameters of `forward` that hold a tensor, or several."""
    given, node = local(scene, "apply", "args"), forward.node
    names, rest = positional_parameters(node)[1:], node.args.vararg
    for i, value in enumerate(given if isinstance(given, tuple) else ()):
        if isinstance(value, torch.Tensor):
            yield names[i] if i < len(names) else rest.arg if rest is not None else ""


def _is_batched(scene: Scene) -> bool:
    return local(scene, "_flat_vmap", "batch_size") is not MISSING


def _in_forward_mode(scene: Scene) -> bool:
    """Whether it lacks a rule for forward mode as well."""
    return local(scene, "_jvp_with_argnums", "level") is not MISSING
