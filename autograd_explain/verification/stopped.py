"""What a program has stopped the gradient of, followed by identity to where it meets the graph.

A value may be added to what it was computed of (`x + (q(x) - x).detach()`): then the gradient goes
straight through, as is meant.  A sample whose density goes into the loss with weights that differ
from element to element is the score function's, which needs no gradient of the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from ..isolation.type_checks import with_subclasses
from ..nodes import GraphTraversal
from .gradient_log import MAX_NODES, leaves_of
from .nonfinite import frames
from .reference import replaced
from .tracked import has_history, tensors_in

_NOISE = 1e-6
_FEW = 2  #: weights that tell whether they differ
#: Of results that hold other values, or are stopped as written once more.
_OTHERWISE = frozenset({"detach", "data", "new_zeros", "new_ones", "new_empty", "new_full"})
_SUMS = ("AddBackward", "SubBackward", "RsubBackward")


class Followed:
    """Where tensors came from; what is computed of one comes from there, too."""

    def __init__(self) -> None:
        #: The tensors are held, so that their identities stay theirs.
        self._known: dict[int, tuple[torch.Tensor, tuple[Any, ...]]] = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    def add(self, tensors: Iterable[torch.Tensor], origins: tuple[Hashable, ...]) -> None:
        for tensor in tensors:
            own = self._known[id(tensor)][1] if id(tensor) in self._known else ()
            self._known[id(tensor)] = tensor, tuple(dict.fromkeys((*own, *origins)))

    def origins(self, tensors: Iterable[torch.Tensor]) -> tuple[Any, ...]:
        found = (self._known[id(t)][1] for t in tensors if id(t) in self._known)
        return tuple(dict.fromkeys(origin for origins in found for origin in origins))

    def clear(self) -> None:
        self._known.clear()


@dataclass
class _Weights:
    """Those that came back to log-densities, which one line computes."""

    number: int = 0
    least: float = float("inf")
    most: float = float("-inf")

    def add(self, gradient: torch.Tensor) -> None:
        self.number += gradient.numel()
        self.least = min(self.least, float(gradient.min()))
        self.most = max(self.most, float(gradient.max()))

    @property
    def equal(self) -> bool:
        noise = _NOISE * max(abs(self.least), abs(self.most))
        return self.number >= _FEW and self.most - self.least <= noise


@dataclass
class StoppedValues:
    """Places, told apart by any hashable, at which values were stopped in a round."""

    _from: Followed = field(default_factory=Followed)
    _sums: list[tuple[Hashable, Any]] = field(default_factory=list)
    _weights: dict[Hashable, dict[Hashable, _Weights]] = field(default_factory=dict)
    _uses: dict[Hashable, set[bool]] = field(default_factory=dict)
    _densities: int = 0  #: that are being computed
    _samples: list[bool] = field(default_factory=list)  #: that are, and whether they could be

    def clear(self) -> None:
        """A round is over."""
        self._from.clear()
        self._sums.clear()
        self._weights.clear()
        self._uses.clear()

    def add(self, result: Any, place: Hashable) -> None:
        self._from.add(tensors_in((result,)), (place,))

    def computed(self, name: str, given: Iterable[torch.Tensor], result: Any) -> None:
        """An operation ran: what it made of stopped values alone is stopped; note the sums."""
        places = () if name in _OTHERWISE or name.endswith("_like") else self._from.origins(given)
        for made in tensors_in((result,)) if places else ():
            if not made.requires_grad:
                self._from.add((made,), places)
            elif not self._densities and _is_sum(made):
                self._sums += [(place, made.grad_fn) for place in places]

    def origins(self, given: Iterable[torch.Tensor]) -> tuple[Hashable, ...]:
        """The places at which these, or what they were computed of, were stopped."""
        return self._from.origins(given)

    def used(self, given: Iterable[torch.Tensor], stops: bool) -> None:
        """An operation reads these; it may be written to stop what it is given."""
        for place in self._from.origins(given) if not self._samples else ():
            self._uses.setdefault(place, set()).add(stops)

    def is_said(self, place: Hashable) -> bool:
        """Whether all that was done with what left at a place was to stop it as written:
        `q.sample().detach()`."""
        return self._uses.get(place) == {True}

    def passed_through(self, place: Hashable, sources: Sequence[torch.Tensor]) -> bool:
        """Whether what left at a place was added to what it had been computed of."""
        behind = _behind(sources)
        return any(_key(fn) in behind for at, node in self._sums if at == place for fn in _of(node))

    def nothing_left(self, sources: Mapping[Any, Sequence[torch.Tensor]]) -> set[Hashable]:
        """The places at which what is added to its own value (`x - x.detach()`) gets another."""
        zeros = {node for at, node in self._sums if self.passed_through(at, sources.get(at, ()))}
        return {at for at, node in self._sums if zeros.intersection(_of(node))}

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Run the body; note what distributions draw, and with which weights log-densities of that
        go into losses."""
        with ExitStack() as stack:
            for kind in with_subclasses(torch.distributions.Distribution):
                for name, make in (("log_prob", self._weighing), ("sample", self._drawing)):
                    if name in vars(kind):
                        stack.enter_context(replaced(kind, name, make))
            yield

    @property
    def is_drawn(self) -> bool:
        """Whether a distribution draws a sample that it could compute, while a graph is
        recorded."""
        return bool(self._samples) and self._samples[0]

    def _drawing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def sample(distribution: Any, *args: Any, **kwargs: Any) -> Any:
            self._samples.append(distribution.has_rsample and torch.is_grad_enabled())
            try:
                return original(distribution, *args, **kwargs)
            finally:
                self._samples.pop()

        return sample

    def _weighing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def log_prob(distribution: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
            self._densities += 1
            try:
                result = original(distribution, value, *args, **kwargs)
            finally:
                self._densities -= 1
            places = self._from.origins(tensors_in((value,)))
            if places and isinstance(result, torch.Tensor) and result.requires_grad:
                weighed = partial(self._weighed, places, frames()[:1])
                result.register_hook(weighed)  # type: ignore[no-untyped-call]
            return result

        return log_prob

    def _weighed(self, places: Iterable[Hashable], line: Hashable, gradient: torch.Tensor) -> None:
        with torch._C.DisableTorchFunctionSubclass():
            for place in places:
                found = self._weights.setdefault(place, {}).setdefault(line, _Weights())
                found.add(gradient.detach())

    def weighs_alike(self, place: Hashable) -> bool | None:
        """Whether each line that takes a log-density of a sample weighs it alike everywhere, so
        that it is no score function; None where none is taken."""
        found = self._weights.get(place)
        return None if found is None else all(weights.equal for weights in found.values())


@dataclass
class StoppedUpdates:
    """Derivatives that were recorded and then stopped, and where one was computed with what it is
    with respect to, if that is trained: `p - lr * g.detach()`."""

    #: By identity, each with the tensors that it is with respect to; they are held.
    _recorded: dict[int, tuple[torch.Tensor, tuple[torch.Tensor, ...]]] = field(
        default_factory=dict
    )
    _inputs: dict[Hashable, list[torch.Tensor]] = field(default_factory=dict)
    _found: set[Hashable] = field(default_factory=set)

    def clear(self) -> None:
        """A round is over."""
        self._recorded.clear()
        self._inputs.clear()
        self._found.clear()

    def recorded(self, results: Iterable[torch.Tensor], inputs: tuple[torch.Tensor, ...]) -> None:
        self._recorded.update({id(t): (t, inputs) for t in results})

    def stopped(self, place: Hashable, sources: Iterable[torch.Tensor]) -> None:
        """These were stopped at a place."""
        for source in sources:
            if id(source) in self._recorded:
                self._inputs.setdefault(place, []).extend(self._recorded[id(source)][1])

    def computed(
        self,
        origins: Callable[[Sequence[torch.Tensor]], Iterable[Hashable]],
        given: Sequence[torch.Tensor],
        stepped: Collection[int],
    ) -> None:
        """An operation reads these; `origins` are the places at which they were stopped, and
        optimizers hold what has `stepped`."""
        for place in origins(given) if self._inputs else ():
            inputs = [t for t in self._inputs.get(place, ()) if any(t is g for g in given)]
            leaves = leaves_of(inputs)[0] if inputs else ()
            if any(isinstance(t, torch.nn.Parameter) or id(t) in stepped for t in leaves):
                self._found.add(place)

    def is_at(self, place: Hashable) -> bool:
        return place in self._found


def _is_sum(tensor: torch.Tensor) -> bool:
    node = tensor.grad_fn if has_history(tensor) else None
    return node is not None and node.name().startswith(_SUMS)


def _behind(sources: Sequence[torch.Tensor]) -> set[Any]:
    walked = GraphTraversal((t.grad_fn for t in sources), limit=MAX_NODES)
    return {_key(r.node) for r in walked} | {id(t) for t in sources if t.is_leaf}


def _of(node: Any) -> Iterator[Any]:
    return (fn for fn, _ in node.next_functions if fn is not None)


def _key(node: Any) -> Any:
    """A node, or the leaf that it fills."""
    return id(node.variable) if hasattr(node, "variable") else node
