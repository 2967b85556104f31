"""Custom Functions whose recorded `backward` takes for constant what depends on their inputs.

`forward` runs without recording: what it computed in between and kept has no graph, so that the
derivative of what `backward` makes of it is not the whole one, and nothing says so.  The Function
is applied to copies whose inputs are moved: what `backward` hands back changes by what its
derivative says, or it lacks something.  It need not be the derivative of `forward` for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from torch.autograd import function as torch_functions
from torch.autograd import graph as autograd_graph

from .differences import direction
from .tracked import tensors_in

#: Of a number's size, in double precision.
_STEP = 1e-5
_FAR = 1e-2  #: the share by which a derivative may miss a difference
_SMALL = 1e-7
_MAX_ELEMENTS = 1_000_000
Base: Any = getattr(torch_functions, "_SingleLevelFunction", torch.autograd.Function)


def applied(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """`cls.apply(…)` as without those who watch it."""
    return super(Base, cls).apply(*args, **kwargs)


class _Context:
    """Stands for `ctx` where `forward` runs for its derivative alone."""

    def save_for_backward(self, *tensors: Any) -> None: ...
    def save_for_forward(self, *tensors: Any) -> None: ...
    def mark_dirty(self, *tensors: Any) -> None: ...
    def mark_non_differentiable(self, *tensors: Any) -> None: ...
    def set_materialize_grads(self, value: bool) -> None: ...


def forward_alone(cls: Any, args: Sequence[Any]) -> Any:
    """What `forward` gives, computed where it is called."""
    separate = "setup_context" in dir(cls) and (
        cls.setup_context is not torch.autograd.Function.setup_context
    )
    return cls.forward(*args) if separate else cls.forward(_Context(), *args)


def lacking_derivatives(cls: Any, args: Sequence[Any], gradients: Sequence[Any]) -> tuple[int, ...]:
    """The inputs, by number, on which what `backward` hands back depends otherwise than its
    derivative says; () where that cannot be had."""
    wanted = [n for n, v in enumerate(args) if isinstance(v, torch.Tensor) and v.requires_grad]
    sizes = sum(t.numel() for t in tensors_in(args))
    if not wanted or sizes > _MAX_ELEMENTS:
        return ()
    given, came = _in_double(args), _in_double(gradients)
    with suppress(Exception), torch.random.fork_rng(devices=[]):
        return tuple(n for n in wanted if _lacks(cls, given, came, wanted, n))
    return ()


def _lacks(
    cls: Any, args: Sequence[Any], gradients: Sequence[Any], wanted: Sequence[int], number: int
) -> bool:
    size = float(args[number].abs().max()) or 1.0
    along = direction(args[number], number)
    told = _answer(cls, args, gradients, wanted, number, along)[1]
    slopes = []
    for step in (_STEP * size, 2 * _STEP * size):
        values = []
        for way in (step, -step):
            moved = [*args[:number], args[number] + way * along, *args[number + 1 :]]
            values.append(_answer(cls, moved, gradients, wanted, number, along)[0])
        slopes.append((values[0] - values[1]) / (2 * step))
    near, far = slopes
    most = max(abs(near), abs(told))
    smooth = abs(near - far) <= _FAR / 10 * most
    return smooth and most > _SMALL and abs(near - told) > _FAR * most


def _answer(
    cls: Any,
    args: Sequence[Any],
    gradients: Sequence[Any],
    wanted: Sequence[int],
    number: int,
    along: torch.Tensor,
) -> tuple[float, float]:
    """A number made of what `backward` hands back, and its derivative along a direction."""
    torch.manual_seed(0)
    with torch.enable_grad():
        leaves = {n: args[n].clone().requires_grad_() for n in wanted}
        outputs = applied(cls, *(leaves.get(n, v) for n, v in enumerate(args)))
        found = _graded(outputs, gradients, tuple(leaves.values()), True)
        # Always the same weights: `direction` goes by the size of what it is given.
        terms = [(g * direction(torch.ones_like(g), 0)).sum() for g in found if g is not None]
        total = torch.stack(terms).sum()
        if not total.requires_grad:
            return float(total.detach()), 0.0
        (slope,) = _graded(total, (torch.ones_like(total),), (leaves[number],), False)
    return float(total.detach()), 0.0 if slope is None else float((slope * along).sum())


def derivatives_of_forward(
    cls: Any, args: Sequence[Any], gradients: Sequence[Any], given: Sequence[Any]
) -> tuple[Any, ...] | None:
    """What autograd makes of `forward`, with its graph, where `backward` hands back the same
    values; None where it does not."""
    wanted = [n for n, g in enumerate(given) if isinstance(g, torch.Tensor)]
    try:
        with torch.enable_grad():
            # Their own tensors, as the forward may write its inputs.
            own = {n: args[n].clone() for n in wanted if args[n].requires_grad}
            made = forward_alone(cls, [own.get(n, v) for n, v in enumerate(args)])
            found = dict(zip(own, _graded(made, gradients, tuple(own.values()), True), strict=True))
    except Exception:  # a forward that torch cannot follow
        return None
    same = [
        (right := found.get(n)) is not None
        and torch.allclose(right, given[n], rtol=1e-3, atol=1e-6)
        for n in own
    ]
    return tuple(found.get(n, g) for n, g in enumerate(given)) if same and all(same) else None


def _graded(
    outputs: Any, gradients: Sequence[Any], inputs: tuple[torch.Tensor, ...], graph: bool
) -> tuple[torch.Tensor | None, ...]:
    pairs = zip(tensors_in((outputs,)), gradients, strict=False)
    wanted = [(o, g) for o, g in pairs if o.requires_grad and isinstance(g, torch.Tensor)]
    return autograd_graph._engine_run_backward(
        tuple(o for o, _ in wanted),
        tuple(g.expand_as(o) for o, g in wanted),
        graph,
        graph,
        inputs,
        allow_unreachable=True,
        accumulate_grad=False,
    )


def _in_double(values: Sequence[Any]) -> list[Any]:
    """Copies without a graph, floating point numbers in double precision."""
    return [
        v.detach().clone().to(torch.float64 if v.dtype.is_floating_point else v.dtype)
        if isinstance(v, torch.Tensor)
        else v
        for v in values
    ]
