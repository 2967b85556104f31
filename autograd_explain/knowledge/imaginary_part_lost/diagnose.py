"""A complex value was cast to a real type, or written into a real tensor."""

import ast
from dataclasses import dataclass, replace
from types import ModuleType

import torch

from autograd_explain.arguments import values_given
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING, in_frame
from autograd_explain.inspect.dataflow.syntax import container_of
from autograd_explain.inspect.facts.value_names import outer_names, read_with_gradient, stored_names
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import (
    Certainty,
    Confidence,
    Finding,
    Place,
    Role,
    TensorFact,
    What,
    label,
)

PATTERNS = ("complex-cast-to-real",)

EXAMPLE = {
    "value": "torch.fft.rfft(gain * signal[i])",
    "call": "spectra[i] = torch.fft.rfft(gain * signal[i])",
    "place": "In[2]:3",
    "buffer": "spectra",
    "dtype": "cfloat",
}

_CASTS = frozenset("float double half bfloat16 to type type_as as_tensor sum mean".split())
#: Calls that make a tensor of whatever type they are told.
_MAKERS = frozenset(
    f"{prefix}{name}{end}"
    for name in ("zeros", "empty", "ones", "full")
    for prefix, end in (("", ""), ("", "_like"), ("new_", ""))
)


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    value: Place  #: the complex expression
    written: bool  #: into a real tensor
    made: Place | None  #: the call that made that tensor
    dtype: str  #: what holds the value, in torch's words
    back: bool  #: an inverse transform gives the value


@dataclass(frozen=True, eq=False)
class _Cast:
    """What lost its imaginary part, and the tensor that it was written into."""

    value: ExprAt
    buffer: ExprAt | None = None


def diagnose(scene: Scene) -> Finding[Details] | None:
    at = scene.surfaced
    cast = None if at is None else _cast(scene, at)
    if at is None or cast is None or not _is_recorded(scene, cast.value):
        return None  # no gradient is lost
    value, buffer = cast.value, cast.buffer
    statement = scene.slicer.statement(at)
    cause = scene.event_at(What.CAUSE, value if buffer is not None else at)
    made = None if buffer is None else _made(scene, buffer)
    dtype = _dtype(scene, cast)
    shown = at.text if buffer is None or statement is None else ast.unparse(statement)
    events = [replace(cause, certainty=Certainty.OBSERVED)]
    if made is not None:
        events.append(scene.event_at(What.CREATED, made))
    return Finding(
        cause="imaginary_part_lost",
        confidence=Confidence.PROVEN,
        facts={
            "value": value.text,
            "call": shown,
            "place": label(cause.place),
            "buffer": "" if buffer is None else buffer.text,
            "dtype": dtype,
        },
        tensors=(_culprit(scene, cast),),
        events=(*events, scene.failed()),
        variant="" if buffer is None else "written",
        details=Details(
            value=scene.slicer.place(value),
            written=buffer is not None,
            made=scene.place_at(made),
            dtype=dtype,
            back=any(m.called.startswith("ifft") for m in scene.slicer.makers(value)),
        ),
    )


def _is_recorded(scene: Scene, value: ExprAt) -> bool:
    """Whether autograd records what is cast."""
    if not torch.is_grad_enabled():
        return False
    tensor = scene.slicer.tensor(value)
    carries = tensor is None and scene.gradient_tracer.trace(value).carries
    return carries or (tensor is not None and tensor.requires_grad)


def _cast(scene: Scene, at: ExprAt) -> _Cast | None:
    """`x` of `x.float()`, of `buffer.copy_(x)` and of `buffer[i] = x`."""
    node = at.node
    if isinstance(node, ast.Call):
        given, owner = at.argument(0, "src", "data", "input"), at.receiver
        if at.called == "copy_" and given is not None and owner is not None:
            return _Cast(given, _whole(owner))
        if at.called not in _CASTS or _is_whole_number(scene, node):
            return None
        value = MISSING if owner is None else scene.slicer.value(owner)
        if owner is None or isinstance(value, ModuleType):
            return None if given is None else _Cast(given)
        return None if isinstance(value, torch.nn.Module) else _Cast(owner)
    statement = scene.slicer.statement(at)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if isinstance(statement, ast.Assign) and isinstance(target, ast.Subscript):
        return _Cast(at.inside(statement.value), _whole(at.inside(target)))
    return None


def _is_whole_number(scene: Scene, call: ast.Call) -> bool:
    """Whether the type asked for has no gradient anyway."""
    given = values_given(call)
    types = (in_frame(node, scene.incident.user_frames[-1].frame) for node in given)
    return any(type(t) is torch.dtype and not t.is_floating_point for t in types)


def _whole(spot: ExprAt) -> ExprAt:
    """`buffer` of `buffer[i]` and of `buffer[:, k]`."""
    return spot.inside(container_of(spot.node)) if isinstance(spot.node, ast.expr) else spot


def _made(scene: Scene, buffer: ExprAt) -> ExprAt | None:
    """The one call of torch's that made the tensor, where that takes a type."""
    makers = scene.slicer.makers(buffer)
    return makers[0] if len(makers) == 1 and makers[0].called in _MAKERS else None


def _dtype(scene: Scene, cast: _Cast) -> str:
    spots = (cast.value, cast.buffer)
    tensors = [scene.slicer.tensor(s) for s in spots if s is not None]
    wide = (torch.float64, torch.complex128)
    return "cdouble" if any(t is not None and t.dtype in wide for t in tensors) else "cfloat"


def _culprit(scene: Scene, cast: _Cast) -> TensorFact:
    """What holds the real part alone, or else the complex value."""
    spot = cast.value if cast.buffer is None else cast.buffer
    read = read_with_gradient(scene, cast.value)
    names = (spot.text, *outer_names(scene, spot), *stored_names(scene, cast.value), *read)
    tensor = scene.slicer.tensor(spot)
    if tensor is not None:
        return scene.fact(Role.CULPRIT, tensor, *names)
    return TensorFact(Role.CULPRIT, tuple(dict.fromkeys(names)), requires_grad=True)
