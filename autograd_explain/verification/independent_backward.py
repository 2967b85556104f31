"""Custom Functions whose `backward` hands back the same gradient whatever gradient comes in.

A `backward` is asked again, with the same context and another gradient.  What comes out the same
knows nothing of the rest of the program: it is right only where what comes in is all ones.  The
program may well mean it where the output does not follow that input, or is that input: a gradient
given to a value on the way (an auxiliary loss, a replaced gradient).  A rounding, a reversal, a
clipped or scaled gradient use what comes in, and are left alone whatever they make of it.

One that hands back none for an input that the output follows, and that requires grad, is noted
where nothing else of the same pass reached the leaves behind it.  Where another term did, it may
be meant: a quantiser hands the gradient straight through and leaves its codebook to a loss of its
own.  It is noted where all it hands back for the other inputs are derivatives of its `forward`.

A `backward` that is recorded, because its result is to be differentiated again, is asked about what
it keeps for constant (`second_derivative.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.autograd import function as torch_functions
from torch.autograd import graph as autograd_graph

from ..nodes import INPUTS, GraphTraversal
from .differences import direction
from .gradient_log import MAX_NODES
from .nonfinite import Found, frames, own_backward
from .objects import names_in
from .plan import CodeRange, IgnoredGradient
from .reference import around_backwards, replaced
from .running import RunningFunctions
from .second_derivative import (
    Base,
    applied,
    derivatives_of_forward,
    forward_alone,
    lacking_derivatives,
)
from .tracked import tensors_in

_STEP = 1e-2
_PROBES = 3
_MAX_ROUNDS = 3
_OTHER = -2.0
_RELATIVE, _ABSOLUTE = 1e-3, 1e-6  #: of two ways to compute one derivative
_CALL = "_autograd_explain_call"


@dataclass(frozen=True)
class _Call:
    """An application of a Function: what it got and what came out, copied."""

    cls: Any
    args: tuple[Any, ...]
    outputs: tuple[torch.Tensor, ...]
    live: tuple[Any, ...]  #: what it got, with its graph


@dataclass(frozen=True)
class _Missing:
    """What an application was given none for: the leaves behind it, and, where the rest of what it
    hands back are derivatives, those of them that nothing else that it got comes from."""

    found: IgnoredGradient
    leaves: list[torch.Tensor]
    own: list[torch.Tensor]

    def told(self) -> IgnoredGradient | None:
        """What is noted of it once the pass is over."""
        if self.leaves and all(leaf.grad is None for leaf in self.leaves):
            return self.found
        return replace(self.found, partly=True) if self.own else None


class IgnoredGradients:
    """Notes such gradients; ends the run behind the first backward that has some, or, where it
    `mends`, puts the derivative of the Function's own `forward` in their place.

    `doubts` say that this derivative could not be had.
    """

    def __init__(
        self, namespace: Mapping[str, Any], running: RunningFunctions, mends: bool = False
    ) -> None:
        self.found: list[IgnoredGradient] = []
        self.doubts: set[str] = set()
        self._namespace = namespace
        self._running = running
        self._mends = mends
        self._rounds = 0
        #: What recorded backwards lack, with the nodes of what they handed back.
        self._awaited: list[tuple[IgnoredGradient, set[Any]]] = []
        #: Of which Functions that is known: asking takes as long as many backwards.
        self._lacking: dict[Any, tuple[int, ...]] = {}
        self._at: tuple[CodeRange, ...] = ()
        self._missing: list[_Missing] = []  #: in this pass

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Run the body."""
        with (
            replaced(Base, "apply", lambda _: classmethod(self._applying)),
            replaced(torch_functions.BackwardCFunction, "apply", self._answering),
            around_backwards(self._around),
        ):
            yield

    def _applying(self, cls: Any, *args: Any, **kwargs: Any) -> Any:
        """What `Function.apply` calls."""
        result = applied(cls, *args, **kwargs)
        with _aside():
            outputs = tuple(tensors_in((result,)))
            node = next((t.grad_fn for t in outputs if t.requires_grad), None)
            if isinstance(node, torch_functions.BackwardCFunction) and own_backward(node):
                kept = _Call(cls, _copied(args), tuple(t.clone() for t in outputs), args)
                setattr(node, _CALL, kept)
        return result

    def _answering(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def answer(node: Any, *gradients: Any) -> Any:
            call: _Call | None = getattr(node, _CALL, None)
            if call is not None and torch.is_grad_enabled():
                return self._recorded(original, node, call, gradients)
            if call is None:
                return original(node, *gradients)
            with _aside():
                return self._answered(original, node, call, gradients)

        return answer

    def _answered(
        self, original: Callable[..., Any], node: Any, call: _Call, gradients: tuple[Any, ...]
    ) -> Any:
        result = original(node, *gradients)
        single = not isinstance(result, tuple)
        given = self._completed(node, call, gradients, (result,) if single else result)
        if _tells(gradients):
            given = self._asked_again(original, node, call, gradients, _copied(given))
        return given[0] if single else given

    def _asked_again(
        self,
        original: Callable[..., Any],
        node: Any,
        call: _Call,
        gradients: tuple[Any, ...],
        first: tuple[Any, ...],
    ) -> tuple[Any, ...]:
        others = tuple(_OTHER * g if isinstance(g, torch.Tensor) else g for g in gradients)
        second: Any = ()
        with suppress(Exception), torch.random.fork_rng(devices=[]):
            second = original(node, *others)
        second = second if isinstance(second, tuple) else (second,)
        pairs = enumerate(zip(first, second, strict=False))
        alike = [n for n, (a, b) in pairs if _is_alike(a, b) and _follows(call, n)]
        if alike:
            self._keep(self._told(node, call, gradients, first, alike))
            if self._mends:
                return self._mended(call, gradients, first, alike)
        return first

    def _completed(
        self, node: Any, call: _Call, gradients: tuple[Any, ...], given: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """Notes the inputs that got none, though the output follows them."""
        pairs = enumerate(zip(given, node.needs_input_grad, strict=False))
        none = [n for n, (g, needed) in pairs if g is None and needed and _follows(call, n)]
        if not none:
            return given
        found = replace(self._told(node, call, gradients, given, none), missing=True)
        leaves, others = _leaves(node, call, none), _given(given)
        shared = {id(t) for t in _leaves(node, call, others)}
        own = [leaf for leaf in leaves if id(leaf) not in shared]
        right = bool(own and others) and _are_derivatives(call, gradients, given, others, none)
        self._missing.append(_Missing(found, leaves, own if right else []))
        return self._mended(call, gradients, given, none) if self._mends else given

    def _recorded(
        self, original: Callable[..., Any], node: Any, call: _Call, gradients: tuple[Any, ...]
    ) -> Any:
        result = original(node, *gradients)
        given = result if isinstance(result, tuple) else (result,)
        with torch._C.DisableTorchFunctionSubclass():
            lacking = self._lacking.get(call.cls, ())
            lacking = lacking or lacking_derivatives(call.cls, call.live, gradients)
            if lacking:
                self._lacking[call.cls] = lacking
                found = self._told(node, call, gradients, given, lacking)
                made = {t.grad_fn for t in tensors_in(given) if t.grad_fn is not None}
                self._awaited.append((replace(found, second=True), made))
            if lacking and self._mends:
                mended = derivatives_of_forward(call.cls, call.live, gradients, given)
                if mended is None:
                    self.doubts.add("ambiguous")
                    return result
                return mended if isinstance(result, tuple) else mended[0]
        return result

    def _keep(self, found: IgnoredGradient) -> None:
        if all(other.function != found.function for other in self.found):
            self.found.append(found)

    def _told(
        self,
        node: Any,
        call: _Call,
        gradients: Sequence[Any],
        given: Sequence[Any],
        alike: Sequence[int],
    ) -> IgnoredGradient:
        came = [g for g in gradients if isinstance(g, torch.Tensor)]
        shapes = {g.shape for n in alike if isinstance(g := given[n], torch.Tensor)}
        fits = len(gradients) == 1 and all(g.numel() == 1 or shapes == {g.shape} for g in came)
        leaves = _leaves(node, call, alike)
        keys = {id(t) for t in leaves}
        names = self._running.names_of(keys) | names_in(self._namespace)
        told = tuple(names[id(t)] for t in leaves if id(t) in names)
        return IgnoredGradient(own_backward(node)[0], tuple(alike), fits, told, self._at)

    def _mended(
        self,
        call: _Call,
        gradients: Sequence[Any],
        given: tuple[Any, ...],
        alike: Sequence[int],
    ) -> tuple[Any, ...]:
        """What was handed back, with derivatives of `forward` in the places in question."""
        try:
            right = _derivatives(call, gradients, alike)
        except Exception:  # a forward that torch cannot follow
            right = {}
        if not all(_is_something(right.get(n)) for n in alike):
            self.doubts.add("ambiguous")
            return given
        return tuple(right.get(n, value) for n, value in enumerate(given))

    def _differentiated(self, roots: Iterable[torch.Tensor]) -> None:
        """What a recorded backward has handed back is differentiated now, if it is in the graph."""
        if self._awaited:
            walked = GraphTraversal((t.grad_fn for t in roots), limit=MAX_NODES)
            nodes = {r.node for r in walked}
            for found, made in self._awaited:
                if not made or made & nodes:
                    self._keep(replace(found, backward=self._at))

    def _around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            self._at = frames()
            self._differentiated(tuple(tensors_in((outputs,))))
            result = original(outputs, *args, **kwargs)
            with torch._C.DisableTorchFunctionSubclass():
                chosen = any(args[INPUTS : INPUTS + 1])
                whole = kwargs.get("accumulate_grad") is True and not chosen
                for found in (missing.told() for missing in self._missing if whole):
                    if found is not None:
                        self._keep(found)
            self._missing.clear()
            self._rounds += 1
            if not self._mends and (self.found or self._rounds >= _MAX_ROUNDS):
                raise Found
            return result

        return run


@contextmanager
def _aside() -> Iterator[None]:
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        yield


def _copied(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(v.detach().clone() if isinstance(v, torch.Tensor) else v for v in values)


def _tells(gradients: Sequence[Any]) -> bool:
    """Whether ignoring these makes a difference: some number is neither 1 nor all are 0."""
    came = [g for g in gradients if isinstance(g, torch.Tensor) and g.layout == torch.strided]
    with _aside():
        ones = all(bool((g == 1).all()) for g in came)
        return not ones and any(bool(g.any()) for g in came)


def _given(gradients: Sequence[Any]) -> list[int]:
    return [n for n, g in enumerate(gradients) if isinstance(g, torch.Tensor)]


def _are_derivatives(
    call: _Call,
    gradients: Sequence[Any],
    given: Sequence[Any],
    numbers: Sequence[int],
    none: Sequence[int],
) -> bool:
    """Whether these are the derivatives of `forward`, which has some for the inputs of `none`."""
    with suppress(Exception):  # a forward that torch cannot follow, other dtypes or layouts
        right = _derivatives(call, gradients, (*numbers, *none))
        return all(map(_is_something, right.values())) and all(
            given[n].shape == right[n].shape
            and torch.allclose(given[n], right[n], _RELATIVE, _ABSOLUTE)
            for n in numbers
        )
    return False


def _is_something(gradient: Any) -> bool:
    """Whether it can be what is meant: that of a rounding is 0, and mostly not."""
    return isinstance(gradient, torch.Tensor) and bool(gradient.any())


def _is_alike(first: Any, second: Any) -> bool:
    """Whether two answers are one gradient, of which something can be said."""
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return False
    return bool(first.any()) and torch.equal(first, second)


def _follows(call: _Call, number: int) -> bool:
    """Whether the output depends on this input, and is another value."""
    given = call.args[number] if number < len(call.args) else None
    if not isinstance(given, torch.Tensor) or not given.is_floating_point():
        return False
    if any(o.shape == given.shape and torch.equal(o, given) for o in call.outputs):
        return False
    before = _outputs(call, call.args)
    if not _are_close(call.outputs, before):
        return False
    # What one direction does to a mean may cancel out.
    moved = (given + _STEP * direction(given, order) for order in range(_PROBES))
    changed = ((*call.args[:number], m, *call.args[number + 1 :]) for m in moved)
    return any(not _are_close(before, _outputs(call, args)) for args in changed)


def _are_close(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> bool:
    return all(_is_close(a, b) for a, b in zip(first, second, strict=False))


def _outputs(call: _Call, args: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    with suppress(Exception), torch.random.fork_rng(devices=[]):
        return tuple(tensors_in((applied(call.cls, *_copied(args)),)))
    return ()


def _is_close(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.shape == second.shape and torch.allclose(first, second, rtol=1e-6, atol=0.0)


def _leaves(node: Any, call: _Call, numbers: Sequence[int]) -> list[torch.Tensor]:
    """The leaves behind the inputs of these numbers."""
    return [*GraphTraversal(_behind(node, call, numbers), limit=MAX_NODES).leaves()]


def _behind(node: Any, call: _Call, numbers: Sequence[int]) -> list[Any]:
    """The nodes that made the inputs of these numbers: there is an edge for each tensor."""
    tensors = [n for n, value in enumerate(call.args) if isinstance(value, torch.Tensor)]
    edges = dict(zip(tensors, node.next_functions, strict=False))
    return [edges[n][0] for n in numbers if n in edges]


def _derivatives(call: _Call, gradients: Sequence[Any], numbers: Sequence[int]) -> dict[int, Any]:
    """What autograd makes of `forward`, for inputs by number."""
    with torch.enable_grad():
        leaves = {n: call.args[n].detach().requires_grad_() for n in numbers}
        copied = _copied(call.args)
        # Not the leaves themselves: the forward may write its inputs.
        args = [leaves[n].clone() if n in leaves else v for n, v in enumerate(copied)]
        made = forward_alone(call.cls, args)
    outputs = list(tensors_in((made,)))
    pairs = zip(outputs, gradients, strict=False)
    wanted = [(o, g) for o, g in pairs if o.requires_grad and isinstance(g, torch.Tensor)]
    found = autograd_graph._engine_run_backward(
        tuple(o for o, _ in wanted),
        tuple(g.expand_as(o) for o, g in wanted),
        False,
        False,
        tuple(leaves.values()),
        allow_unreachable=True,
        accumulate_grad=False,
    )
    return dict(zip(leaves, found, strict=True))
