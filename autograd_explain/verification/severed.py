"""Values that leave the graph on their way into a loss, though its gradient needs them.

A number or an array that was computed in the round of a backward, and that the loss of this
backward depends on, is a term that the gradient knows nothing of.  Whether the loss does is found
by running the cell again with that value moved a little, where it left.  The program may well
mean it.  A derivative by torch.autograd.grad without `create_graph` is such a value, too, but as a
step it is meant so: one with respect to what is trained, or that the same weights are applied to
again (an adversarial example, a sample, a first-order update).  A `.detach()` or `no_grad` that
was written is taken at its word, unless NumPy asked for it; and so is a number that weighs other
terms: there the gradients follow it, too.  An array or the number of one parameter is a target, an
old value or a sample where the gradients of the very leaves behind it follow (a semi-gradient, a
ratio of policies); a weight of other terms where no layer reads it.  What leaves inside the
`forward` of a custom Function, its `backward` speaks for.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeGuard

import torch
from torch._C._autograd import _get_sequence_nr as sequence
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ..custom_function import forward_frames
from ..nodes import GraphTraversal
from .dependence import same_numbers, told_apart
from .differences import direction
from .gradient_log import MAX_NODES, leaves_of
from .history_mode import BackwardMode
from .nonfinite import Found, frames
from .objects import names_in
from .plan import CodeRange, SeveredValue
from .running import RunningFunctions
from .tracked import has_history, tensors_in

_STEP = 1e-2
_FAR = 0.5  #: for a derivative: a penalty may make a small part of a loss
_SEED = 20_240_613
_MAX_ROUNDS = 3
_MAX_LOOKS = 2  #: at the graph behind the values of one line, in a round
_MAX_TRIED = 6
_MAX_DERIVATIVES = 40
_CREATE_GRAPH, _INPUTS = 2, 3  #: arguments of the engine, after its outputs

_NUMBERS = frozenset({"item", "tolist", "__float__"})
_ARRAYS = frozenset({"numpy", "__array__"})
_COPIES = frozenset({"tensor", "new_tensor", "as_tensor", "asarray"})
#: What a detached value may pass on its way to NumPy.
_ON_THE_WAY = frozenset(
    {"detach", "cpu", "to", "float", "double", "clone", "contiguous", "squeeze", "view", "reshape"}
)
#: What applies weights to features.
_LAYERS = frozenset(
    "linear bilinear matmul __matmul__ __rmatmul__ mm bmm mv addmm baddbmm einsum conv1d conv2d "
    "conv3d conv_transpose1d conv_transpose2d conv_transpose3d lstm gru rnn_tanh rnn_relu "
    "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell multi_head_attention_forward".split()
)
_MAX_READ = 5_000
_DATA: Any = torch.Tensor.data.__get__  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Left:
    """What left the graph at a line, in one round.

    `leaves` are names of those behind it that the backward reached by another way, `lost` of those
    that it did not reach; `single` says
    that one number of one leaf alone is behind it; `scalar` that it was a number.  `free`: it left
    by a call that gives no choice (`item`, `tolist`, a copy), or nothing between it and the leaves
    is shared with what the loss does know.  `begun` is the round in which it left first.  `step`
    says of a derivative that it may be meant as one, and is None of other values; `others` are the
    leaves behind it, by identity, that it is not with respect to.  `given` tells the gradients of
    `leaves` apart from other ones.
    """

    leaves: tuple[str, ...]
    lost: tuple[str, ...]
    single: bool
    scalar: bool
    free: bool
    begun: int
    step: bool | None = None
    others: frozenset[int] = frozenset()
    given: tuple[float, ...] = ()


class Read(NamedTuple):
    """What tells apart a value without a history to which a layer has applied these leaves."""

    value: float
    leaves: frozenset[int]


@dataclass(frozen=True)
class Round:
    """A backward: its loss, what tells its gradients apart, what left before it, and what layers
    have read by then.  `whole` is False for torch.autograd.grad."""

    loss: float
    given: tuple[float, ...]
    left: Mapping[tuple[CodeRange, ...], Left]
    read: tuple[Read, ...] = ()
    whole: bool = True


@dataclass(frozen=True)
class Moved:
    """The values that leave at a line in the round `begun` are to be moved, and the loss of this
    round is to be looked at."""

    round: int
    begun: int
    place: tuple[CodeRange, ...]


@dataclass
class _Leaving:
    sources: list[torch.Tensor]
    scalar: bool
    chosen: bool  #: a written `.detach()` or `.data`
    begun: int
    looks: int = 0


@dataclass(eq=False)
class _Derivative:
    """What a derivative was taken with respect to, and the leaves behind it that it is not."""

    inputs: tuple[torch.Tensor, ...]
    versions: tuple[int, ...]
    others: frozenset[int]
    again: bool = False  #: computed with one of the others

    def is_step(self, stepped: Collection[int]) -> bool:
        """Whether it may be meant as a step; `stepped` are leaves that an optimizer holds."""
        trained = any(
            id(t) in stepped or isinstance(t, torch.nn.Parameter) or t._version != v
            for t, v in zip(self.inputs, self.versions, strict=True)
        )
        return self.again or trained or not all(t.is_leaf for t in self.inputs)


class SeveredValues(BackwardMode):
    """Notes what leaves the graph in each round, and moves what it is asked to."""

    def __init__(
        self,
        namespace: Mapping[str, Any],
        running: RunningFunctions,
        moved: Moved | None = None,
    ) -> None:
        super().__init__()
        self.found: list[Round] = []
        self._namespace = namespace
        self._running = running
        self._moved = moved
        self._since = sequence()
        self._leaving: dict[tuple[CodeRange, ...], _Leaving] = {}
        self._detached: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        #: What was computed of derivatives; held, so that their identities stay theirs.
        self._computed: dict[int, tuple[torch.Tensor, tuple[_Derivative, ...]]] = {}
        self._derivatives: dict[tuple[int, tuple[CodeRange, ...]], _Derivative] = {}
        self._stepped: set[int] = set()
        self._read: list[Read] = []
        self._wholes = 0

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Run the body."""
        hook = register_optimizer_step_pre_hook(self._note_step)
        try:
            with super().watch():
                yield
        finally:
            hook.remove()

    def _note_step(self, optimizer: torch.optim.Optimizer, *args: Any) -> None:
        self._stepped |= {id(t) for group in optimizer.param_groups for t in group["params"]}

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The rounds, with what later ones have shown of derivatives in earlier ones."""
        return tuple(replace(r, left=dict(self._as_steps(r))) for r in self.found)

    def _as_steps(self, found: Round) -> Iterator[tuple[tuple[CodeRange, ...], Left]]:
        for place, left in found.left.items():
            derivative = self._derivatives.get((left.begun, place))
            if derivative is not None:
                step = derivative.is_step(self._stepped)
                left = replace(left, step=step, others=derivative.others)
            yield place, left

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = "data" if func == _DATA else str(getattr(func, "__name__", ""))
        result = func(*args, **kwargs)
        given = list(tensors_in((*args, *kwargs.values())))
        if self._computed:
            self._computed_on(given, result)
        if name in _LAYERS and len(self._read) < _MAX_READ:
            self._read_by_layer(given)
        if not given or not (name == "data" or name in _KNOWN):
            return result
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            if name in _ON_THE_WAY:
                self._passed_on(given[0], result)
                return result
            sources = self._sources(name, given)
            return self._left(name, sources, result) if sources else result

    def _read_by_layer(self, given: Sequence[torch.Tensor]) -> None:
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            leaves = frozenset(id(t) for t in given if t.requires_grad and t.is_leaf)
            read = [t for t in given if not isinstance(t, torch.nn.Parameter)]
            for tensor in read if leaves else ():
                if tensor.is_floating_point() and not has_history(tensor):
                    self._read.append(Read(float(tensor.double().square().sum()), leaves))

    def _computed_on(self, given: Iterable[torch.Tensor], result: Any) -> None:
        """What is computed of a derivative, and whether the weights behind it are in it again."""
        known = [self._computed[id(t)][1] for t in given if id(t) in self._computed]
        behind = tuple(dict.fromkeys(d for found in known for d in found))
        for derivative in behind:
            derivative.again |= any(id(t) in derivative.others for t in given)
        if behind:
            for made in tensors_in((result,)):
                self._computed[id(made)] = made, behind

    def _passed_on(self, given: torch.Tensor, result: Any) -> None:
        """Remember of which value with a graph a detached one is."""
        if isinstance(result, torch.Tensor) and not result.requires_grad:
            known = self._detached.get(id(given))
            source = known[1] if known is not None else given if has_history(given) else None
            if source is not None:
                self._detached[id(result)] = result, source

    def _sources(self, name: str, given: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        """The tensors of this round whose values leave."""
        found = []
        for tensor in given:
            known = self._detached.get(id(tensor)) if name in _ARRAYS else None
            source = tensor if known is None else known[1]
            if self._is_of_round(source, name):
                found.append(source)
        return found

    def _is_of_round(self, tensor: torch.Tensor, name: str) -> bool:
        if not tensor.requires_grad or not tensor.is_floating_point() or tensor._is_view():
            fresh = tensor.requires_grad and tensor.is_floating_point() and has_history(tensor)
            return fresh and tensor.grad_fn._sequence_nr() >= self._since  # type: ignore[union-attr]
        if tensor.grad_fn is None:
            return name in _NUMBERS or name in _COPIES
        return bool(tensor.grad_fn._sequence_nr() >= self._since)

    def _left(self, name: str, sources: list[torch.Tensor], result: Any) -> Any:
        place = frames()[:1]
        if not place or forward_frames(sys._getframe()) is not None:
            return result
        numbers = all(t.numel() == 1 for t in sources)
        chosen = name == "data" or name in _ARRAYS
        known = self._leaving.setdefault(place, _Leaving([], numbers, chosen, len(self.found)))
        if known.looks < _MAX_LOOKS:
            known.looks += 1
            known.sources += sources
        return _changed(result, self._step_at(place))

    def _step_at(self, place: tuple[CodeRange, ...]) -> float:
        moved = self._moved
        asked = moved is not None and moved.begun == len(self.found) and moved.place == place
        return _STEP if asked else 0.0

    def _derived(self, roots: list[torch.Tensor], inputs: Any, result: Any) -> Any:
        """Derivatives without a graph leave it."""
        place = frames()[:1]
        if not place or not isinstance(result, tuple):
            return result
        begun = len(self.found)
        known = self._leaving.setdefault(place, _Leaving([], False, False, begun))
        if known.looks < _MAX_LOOKS:
            known.looks += 1
            known.sources += roots
        given = tuple(tensors_in((inputs,)))
        leaves = {id(t) for t in leaves_of(roots)[0]} - {id(t) for t in given}
        derivative = _Derivative(given, tuple(t._version for t in given), frozenset(leaves))
        derivative = self._derivatives.setdefault((known.begun, place), derivative)
        step = _FAR if self._step_at(place) else 0.0
        new = tuple(_changed(t, step) for t in result)
        for tensor in tensors_in(new):
            self._computed[id(tensor)] = tensor, (derivative,)
        return new

    def around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            whole = kwargs.get("accumulate_grad") is True
            result = original(outputs, *args, **kwargs)
            with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
                roots = [t for t in outputs if isinstance(t, torch.Tensor)]
                inputs = tuple(tensors_in(args[_INPUTS : _INPUTS + 1]))
                given = {id(t): t.grad if whole else None for t in leaves_of(roots)[0]}
                given |= {} if whole else dict(zip(map(id, inputs), result, strict=False))
                left = self._noted(roots, given)
                loss = sum(float(t.detach().double().sum()) for t in roots if not t.is_complex())
                if not whole and not any(args[_CREATE_GRAPH : _CREATE_GRAPH + 1]):
                    result = self._derived(roots, inputs, result)
                every = told_apart(filter(_is_tensor, given.values()))
                self.found.append(Round(loss, every, left, tuple(self._read), whole))
            if whole:
                self._leaving.clear()
                self._since = sequence()
                self._wholes += 1
            if self._is_enough():
                raise Found
            return result

        return run

    def _is_enough(self) -> bool:
        if self._moved is not None:
            return len(self.found) > self._moved.round
        return self._wholes > _MAX_ROUNDS or len(self.found) > _MAX_DERIVATIVES

    def _noted(
        self, roots: Sequence[torch.Tensor], given: Mapping[int, torch.Tensor | None]
    ) -> dict[tuple[CodeRange, ...], Left]:
        if not self._leaving:
            return {}
        names = self._running.names_of(given.keys()) | names_in(self._namespace)
        inside = _nodes(roots)
        return {
            place: self._told(leaving, given, names, inside)
            for place, leaving in self._leaving.items()
        }

    def _told(
        self,
        leaving: _Leaving,
        given: Mapping[int, torch.Tensor | None],
        names: Mapping[int, str],
        inside: set[Any],
    ) -> Left:
        behind = {id(t): t for t in leaves_of(leaving.sources)[0]}
        named = [(key, names[key]) for key in behind if names.get(key)]
        partly = tuple(name for key, name in named if key in given)
        lost = tuple(name for key, name in named if key not in given)
        shared = leaving.chosen and bool(inside & _nodes(leaving.sources))
        one = all(t.numel() == 1 for t in behind.values()) or all(map(_of_element, leaving.sources))
        single = len(behind) == 1 and one
        own = told_apart(filter(_is_tensor, (given.get(key) for key in behind)))
        return Left(partly, lost, single, leaving.scalar, not shared, leaving.begun, given=own)


def _is_tensor(value: Any) -> TypeGuard[torch.Tensor]:
    return isinstance(value, torch.Tensor)


_KNOWN = _NUMBERS | _ARRAYS | _COPIES | _ON_THE_WAY


def _of_element(tensor: torch.Tensor) -> bool:
    """Whether it was computed of one element of a leaf and of nothing else: `w[i].exp()`."""
    node, selected = tensor.grad_fn, False
    while node is not None and not hasattr(node, "variable"):
        selected = selected or node.name().startswith("SelectBackward")
        behind = [fn for fn, _ in node.next_functions if fn is not None]
        node = behind[0] if len(behind) == 1 else None
    return selected and node is not None and tensor.numel() == 1


def _nodes(tensors: Iterable[torch.Tensor]) -> set[Any]:
    """The nodes behind tensors, but for those of leaves."""
    walked = GraphTraversal((t.grad_fn for t in tensors), limit=MAX_NODES)
    return {r.node for r in walked if not hasattr(r.node, "variable")}


def _changed(value: Any, step: float) -> Any:
    """A copy of a number, list, array or tensor, moved by a share of each number's size."""
    if isinstance(value, torch.Tensor):
        if not value.is_floating_point():
            return value
        new = value.clone().requires_grad_(value.requires_grad)
        new.data.add_(direction(new, 0), alpha=step)
        return new
    if isinstance(value, float):
        return value + step * (abs(value) or 1.0)
    if isinstance(value, list):
        return _changed_list(value, step, random.Random(_SEED))
    if getattr(getattr(value, "dtype", None), "kind", "") == "f":
        moved = _changed(torch.from_numpy(value.copy()), step).numpy()
        return moved.astype(value.dtype).reshape(value.shape)
    return value


def _changed_list(value: Any, step: float, chance: random.Random) -> Any:
    if isinstance(value, list):
        return [_changed_list(v, step, chance) for v in value]
    return _changed(value, step * chance.uniform(-1, 1)) if isinstance(value, float) else value


def candidates(first: Sequence[Round], second: Sequence[Round]) -> tuple[Moved, ...]:
    """What to move, a line once; () where two runs of the program give different losses."""
    losses = [[r.loss for r in rounds] for rounds in (first, second)]
    if not all(map(math.isfinite, losses[0])) or not same_numbers(*losses):
        return ()
    found: dict[tuple[CodeRange, ...], Moved] = {}
    for number, a_round in sorted(enumerate(first), key=lambda pair: not pair[1].whole):
        for place, left in a_round.left.items():
            if (left.leaves or left.lost) and left.free:
                found.setdefault(place, Moved(number, left.begun, place))
    return tuple(found.values())[:_MAX_TRIED]


def severed(moved: Moved, before: Sequence[Round], after: Sequence[Round]) -> SeveredValue | None:
    """What the gradient lacks; None where the loss does not depend on it, or where it may be
    meant."""
    if len(after) <= moved.round:
        return None
    old, new = before[moved.round], after[moved.round]
    left = old.left[moved.place]
    if same_numbers((old.loss,), (new.loss,)) or _may_be_meant(left, moved, old, new):
        return None
    return SeveredValue(moved.place, left.leaves, left.lost)


def _may_be_meant(left: Left, moved: Moved, old: Round, new: Round) -> bool:
    """Whether gradients follow the value in a way that stops it on purpose, too: as a step, a
    target or a weight.  One that they do not follow is a term which they lack."""
    if same_numbers(old.given, new.given):
        return False
    applied = _applied(old.read, new.read)
    if left.step is not None:
        return left.step or bool(applied & left.others)
    if left.scalar and not left.single:
        return True
    again = new.left.get(moved.place)
    own = again is None or not same_numbers(left.given, again.given)
    return own or not (left.scalar or applied)


def _applied(old: Sequence[Read], new: Sequence[Read]) -> set[int]:
    """The leaves that layers have applied to another value than before."""
    if len(old) != len(new):
        return set()
    pairs = zip(old, new, strict=True)
    return {leaf for a, b in pairs if not same_numbers((a.value,), (b.value,)) for leaf in a.leaves}
