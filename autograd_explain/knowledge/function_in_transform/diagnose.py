"""Custom Function without support for function transforms."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch

from autograd_explain.arguments import positional_parameters
from autograd_explain.incident import LiveFrame
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.finding_from_message import At, finding_from_message
from autograd_explain.inspect.facts.torch_call import local
from autograd_explain.inspect.facts.user_definitions import function_names
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
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

_TRANSFORMS = ("apis.py", "eager_transforms.py", "vmap.py")  #: in torch/_functorch


@dataclass(frozen=True)
class Entered:
    """A line that calls what a transform made."""

    place: Place
    sliced: tuple[bool, ...] = ()  #: of `vmap`: which of its arguments it takes apart


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    function: str
    batching: bool  #: there is no rule for vmap
    forward: Place | None = None  #: the `forward` that takes the context and should not
    tensors: frozenset[str] = frozenset()  #: the parameters that were given tensors
    batched: bool = False  #: it ran under vmap
    #: Where no rule can be added to it: the lines that call what a transform made.
    entered: tuple[Entered, ...] = ()


def diagnose(scene: Scene) -> Finding[Details] | None:
    cls = _applied(scene)
    setup = VARIANTS.get(scene.match.pattern) == "setup"
    written = scene.index.method(cls, "forward")
    forward = written if setup else None
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
        wanted = cls is not None and (written is None or forward is not None)
        entered = tuple(dict.fromkeys(_entered(scene))) if wanted else ()
        return told.with_details(Details(told.facts["function"], batching, entered=entered))
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


def _entered(scene: Scene) -> list[Entered]:
    """The user's lines that call what a transform made; none where a library calls one, too, or
    one differentiates, or takes apart, something else than a tensor."""
    found: list[Entered] = []
    for outer, inner in pairwise(scene.incident.frames):
        if not _of_torch(inner, *_TRANSFORMS):
            continue
        place, sliced = scene.incident.place_of(outer), _sliced(inner)
        from_outside = not _of_torch(outer, "")
        if not _is_of_tensor(inner) or (from_outside and (place is None or sliced is None)):
            return []
        if from_outside and place is not None and sliced is not None:
            found.append(Entered(place, sliced))
    return found


def _of_torch(live: LiveFrame, *ends: str) -> bool:
    folder, _, name = live.filename.replace("\\", "/").rpartition("/")
    return folder.endswith("torch/_functorch") and name.endswith(ends)


def _is_of_tensor(live: LiveFrame) -> bool:
    """Whether what a derivative is taken of, if it is taken here, is one tensor."""
    known = live.frame.f_locals
    given, at = known.get("args"), known.get("argnums", MISSING)
    if at is MISSING or not isinstance(given, tuple):
        return True
    return type(at) is int and is_a(dict(enumerate(given)).get(at), torch.Tensor)


def _sliced(live: LiveFrame) -> tuple[bool, ...] | None:
    """Which of its arguments a `vmap` takes apart; None where that is not their first dimension."""
    known = live.frame.f_locals
    given, dims = known.get("args"), known.get("in_dims", MISSING)
    if dims is MISSING or not isinstance(given, tuple):
        return ()
    each = tuple(dims) if isinstance(dims, (tuple, list)) else (dims,) * len(given)
    pairs = list(zip(given, each, strict=False))
    plain = all(d is None or (d == 0 and is_a(value, torch.Tensor)) for value, d in pairs)
    return tuple(d is not None for d in each) if plain and len(pairs) == len(each) else None
