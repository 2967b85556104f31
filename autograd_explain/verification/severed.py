"""Values that leave the graph on their way into a loss, though its gradient needs them.

Whether a loss depends on one is found by running the cell again with that value moved a little,
where it left; `rounds.py` tells whether the program may mean it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import torch
from torch._C._autograd import _get_sequence_nr as sequence
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ..custom_function import forward_frames
from ..library_switch import switch_around
from ..nodes import CREATE_GRAPH, INPUTS, GraphTraversal
from .cancelled import DIFFERENCES, CancelledDifferences
from .dependence import told_apart
from .differences import direction
from .gradient_log import MAX_NODES, leaves_of
from .history_mode import BackwardMode
from .nonfinite import Found, frames, torch_caller
from .objects import names_in
from .plan import CodeRange, SeveredValue
from .rounds import Left, Moved, Read, Round, Stop
from .running import RunningFunctions
from .stopped import Followed, StoppedUpdates, StoppedValues
from .tracked import has_history, tensors_in

_SEED = 20_240_613
_MAX_ROUNDS = 3
_MAX_LOOKS = 2  #: at the graph behind the values of one line, in a round
#: Of derivatives that a program trains by, and of others: a Hessian at many points takes hundreds.
_MAX_STEPS, _MAX_DERIVATIVES = 40, 400

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


@dataclass
class _Leaving:
    sources: list[torch.Tensor]
    scalar: bool
    chosen: bool  #: a written `.detach()` or `.data`
    begun: int
    looks: int = 0
    stopped: Stop | None = None
    array: bool = False

    def look(self, sources: Iterable[torch.Tensor]) -> None:
        if self.looks < _MAX_LOOKS:
            self.looks += 1
            self.sources += sources


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


def _is_trained(tensor: torch.Tensor) -> bool:
    """Whether a program may train this: a parameter, or what it has written to."""
    return isinstance(tensor, torch.nn.Parameter) or tensor._version > 0


class SeveredValues(BackwardMode):
    """Notes what leaves the graph in each round, and moves what it is asked to."""

    def __init__(
        self,
        namespace: Mapping[str, Any],
        running: RunningFunctions,
        moved: Moved | None = None,
        asked: Collection[tuple[str, int]] = (),
        rounds: int = 0,
    ) -> None:
        """`asked` are the lines of written stops to look at; so many `rounds` come before the last
        of what is to be looked at first runs."""
        super().__init__()
        self.found: list[Round] = []
        self._namespace = namespace
        self._running = running
        self._moved = moved
        self._asked = asked
        self._most = max(rounds, _MAX_ROUNDS)
        self._stopped = StoppedValues()
        self._shared: set[CodeRange] = set()
        self._since = sequence()
        self._leaving: dict[tuple[CodeRange, ...], _Leaving] = {}
        self._detached: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._updates = StoppedUpdates()
        self._computed = Followed()  #: of derivatives
        self._derivatives: dict[tuple[int, tuple[CodeRange, ...]], _Derivative] = {}
        self._stepped: set[int] = set()
        self._read: list[Read] = []
        self._wholes = self._steps = 0
        self._differences = CancelledDifferences()
        self.cancelled: list[SeveredValue] = []

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Run the body."""
        hook = register_optimizer_step_pre_hook(self._note_step)
        try:
            with self._stopped.watch() if self._asked else nullcontext(), super().watch():
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
        switched = {place[:1] for place in found.left if len(place) > 1}
        for place, left in found.left.items():
            if place in switched and left.stopped is not None:
                continue  # the line was asked about for its switch
            derivative = self._derivatives.get((left.begun, place))
            left = self._by_switch(left) if left.stopped is Stop.SWITCH else left
            if derivative is not None:
                step = derivative.is_step(self._stepped)
                left = replace(left, step=step, others=derivative.others)
            yield place, left

    def _by_switch(self, left: Left) -> Left:
        """Meant, where no optimizer steps what is behind it; else with the stepped leaves first."""
        names, stepped = names_in(self._namespace), left.others & self._stepped
        trained = {names.get(key) for key in stepped}
        leaves = tuple(sorted(left.leaves, key=lambda name: name not in trained))
        return replace(left, leaves=leaves) if stepped else replace(left, stopped=Stop.MEANT)

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = "data" if func == _DATA else str(getattr(func, "__name__", ""))
        result = func(*args, **kwargs)
        given = list(tensors_in((*args, *kwargs.values())))
        if self._computed:
            self._computed_on(given, result)
        if name in DIFFERENCES:
            with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
                self._differences.computed(args, result)
        if name in _LAYERS and len(self._read) < _MAX_READ:
            self._read_by_layer(given)
        if not given or not (self._asked or name == "data" or name in _KNOWN):
            return result
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            if name in _ON_THE_WAY:
                self._passed_on(given[0], result)
            elif name == "data" or name in _KNOWN:
                sources = self._sources(name, given)
                result = self._left(name, sources, result) if sources else result
            return self._stop(name, args, given, result) if self._asked else result

    def _read_by_layer(self, given: Sequence[torch.Tensor]) -> None:
        with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            leaves = frozenset(id(t) for t in given if t.requires_grad and t.is_leaf)
            read = [t for t in given if not isinstance(t, torch.nn.Parameter)]
            for tensor in read if leaves else ():
                if tensor.is_floating_point() and not has_history(tensor):
                    self._read.append(Read(float(tensor.double().square().sum()), leaves))

    def _computed_on(self, given: Iterable[torch.Tensor], result: Any) -> None:
        """What is computed of a derivative, and whether the weights behind it are in it again."""
        behind = self._computed.origins(given)
        for derivative in behind:
            derivative.again |= any(id(t) in derivative.others for t in given)
        if behind:
            self._computed.add(tensors_in((result,)), behind)

    def _stop(
        self, name: str, args: tuple[Any, ...], given: Sequence[torch.Tensor], result: Any
    ) -> Any:
        """What is stopped at a line that was asked about, and what is made of it."""
        outcome = args[0] if name == "__setitem__" else result
        made = [t for t in tensors_in((outcome,)) if t.is_floating_point()]
        live = _live(given)
        if made:
            self._stopped.used(given, name in _WRITTEN)
        if made and not any(t.requires_grad for t in made) and (live or name in _WRITTEN):
            place = frames()[:1]
            if place and self._is_asked(place):
                if not live and any(t.is_floating_point() for t in given):
                    self._shared.add(place[0])
                elif live and forward_frames(sys._getframe()) is None:
                    outcome = self._stopped_at(place, name, args, given, outcome)
        self._updates.computed(self._stopped.origins, given, self._stepped)
        self._stopped.computed(name, given, _written(args, outcome))
        return None if name == "__setitem__" else outcome

    def _is_asked(self, place: tuple[CodeRange, ...]) -> bool:
        return (place[0].filename, place[0].line) in self._asked

    def _is_new(self, tensor: torch.Tensor) -> bool:
        """A leaf, or computed in this round."""
        computed = has_history(tensor)
        return not computed or tensor.grad_fn._sequence_nr() >= self._since  # type: ignore[union-attr]

    def _stopped_at(
        self,
        place: tuple[CodeRange, ...],
        name: str,
        args: tuple[Any, ...],
        given: Sequence[torch.Tensor],
        outcome: Any,
    ) -> Any:
        sources = [t for t in map(_viewed, _live(given)) if self._is_new(t)]
        if not sources:
            return outcome
        stop = Stop.DRAWN if self._stopped.is_drawn else Stop.TERM
        if by := _by_switch():
            place, stop = (*place, *by), Stop.SWITCH
        known = self._leaving.setdefault(place, _Leaving([], False, True, len(self.found)))
        known.stopped = stop
        known.look(sources)
        self._updates.stopped(place, sources)
        step = self._step_at(place)
        if step:
            outcome = _moved(name, args, given, outcome, step)
        self._stopped.add(_written(args, outcome), place)
        return outcome

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
        if name == "data" and self._is_asked(place):
            return result
        numbers = all(t.numel() == 1 for t in sources)
        chosen = name == "data" or name in _ARRAYS
        known = self._leaving.setdefault(place, _Leaving([], numbers, chosen, len(self.found)))
        known.look(sources)
        known.array = name in _ARRAYS
        return _changed(result, self._step_at(place))

    def _step_at(self, place: tuple[CodeRange, ...]) -> float:
        moved = self._moved
        asked = moved is not None and moved.begun <= len(self.found) and moved.place == place
        return moved.step if moved is not None and asked else 0.0

    def _derived(self, roots: list[torch.Tensor], inputs: Any, result: Any) -> Any:
        """Derivatives without a graph leave it."""
        place = frames()[:1]
        if not place or not isinstance(result, tuple):
            return result
        begun = len(self.found)
        known = self._leaving.setdefault(place, _Leaving([], False, False, begun))
        known.look(roots)
        given = tuple(tensors_in((inputs,)))
        leaves = {id(t) for t in leaves_of(roots)[0]} - {id(t) for t in given}
        derivative = _Derivative(given, tuple(t._version for t in given), frozenset(leaves))
        derivative = self._derivatives.setdefault((known.begun, place), derivative)
        step = self._step_at(place)
        new = tuple(_changed(t, step) for t in result)
        self._computed.add(tensors_in(new), (derivative,))
        return new

    def around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            whole = kwargs.get("accumulate_grad") is True
            if whole:
                with torch._C.DisableTorchFunctionSubclass():
                    self._note_cancelled(outputs, args[0], original)
            result = original(outputs, *args, **kwargs)
            with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
                roots = [t for t in outputs if isinstance(t, torch.Tensor)]
                inputs = tuple(tensors_in(args[INPUTS : INPUTS + 1]))
                given = {id(t): t.grad if whole else None for t in leaves_of(roots)[0]}
                given |= {} if whole else dict(zip(map(id, inputs), result, strict=False))
                left = self._noted(roots, given)
                loss = sum(float(t.detach().double().sum()) for t in roots if not t.is_complex())
                if not whole and not any(args[CREATE_GRAPH : CREATE_GRAPH + 1]):
                    result = self._derived(roots, inputs, result)
                elif not whole:
                    self._updates.recorded(tensors_in((result,)), inputs)
                self._steps += not whole and any(map(_is_trained, inputs))
                every = told_apart(filter(_is_tensor, given.values()))
                self.found.append(Round(loss, every, left, tuple(self._read), whole))
            if whole:
                self._leaving.clear()
                self._stopped.clear()
                self._updates.clear()
                self._since = sequence()
                self._wholes += 1
            if self._is_enough():
                raise Found
            return result

        return run

    def _note_cancelled(self, roots: Any, given: Any, engine: Callable[..., Any]) -> None:
        """The differences that give no gradient, where the program has names for their leaves."""
        for found in self._differences.before_backward(roots, given, engine):
            keys = dict.fromkeys(map(id, found.leaves))
            names = self._running.names_of(keys.keys()) | names_in(self._namespace)
            known = tuple(names[key] for key in keys if names.get(key))
            if known:
                self.cancelled.append(SeveredValue(found.place, known, older=found.older))

    def _is_enough(self) -> bool:
        if self._moved is not None:
            return len(self.found) > self._moved.round
        many = self._steps > _MAX_STEPS or len(self.found) - self._wholes > _MAX_DERIVATIVES
        return self._wholes > self._most or many

    def _noted(
        self, roots: Sequence[torch.Tensor], given: Mapping[int, torch.Tensor | None]
    ) -> dict[tuple[CodeRange, ...], Left]:
        if not self._leaving:
            return {}
        names = self._running.names_of(given.keys()) | names_in(self._namespace)
        inside = _nodes(roots)
        return {
            place: self._told(place, leaving, given, names, inside)
            for place, leaving in self._leaving.items()
        }

    def _told(
        self,
        place: tuple[CodeRange, ...],
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
        left = Left(partly, lost, single, leaving.scalar, not shared, leaving.begun, given=own)
        if leaving.stopped is Stop.SWITCH:
            return replace(left, stopped=leaving.stopped, others=frozenset(behind))
        if leaving.stopped is not None:
            return replace(left, stopped=self._why(place, leaving, inside))
        return replace(left, stopped=Stop.ARRAY) if shared and leaving.array else left

    def _why(
        self, place: tuple[CodeRange, ...], leaving: _Leaving, inside: Collection[Any]
    ) -> Stop:
        if self._updates.is_at(place):
            dropped = all(t.grad_fn not in inside for t in leaving.sources)
            return Stop.UPDATE if dropped else Stop.MEANT
        stopped, alike = self._stopped, self._stopped.weighs_alike(place)
        zeros = stopped.nothing_left({at: kept.sources for at, kept in self._leaving.items()})
        if alike is False or place in zeros or stopped.passed_through(place, leaving.sources):
            return Stop.MEANT
        if leaving.stopped is Stop.DRAWN and stopped.is_said(place):
            return Stop.MEANT
        if leaving.stopped is Stop.DRAWN:
            return Stop.DENSITY if alike else Stop.DRAWN
        return Stop.SHARED if place[0] in self._shared else Stop.TERM


def _is_tensor(value: Any) -> TypeGuard[torch.Tensor]:
    return isinstance(value, torch.Tensor)


_KNOWN = _NUMBERS | _ARRAYS | _COPIES | _ON_THE_WAY
_WRITTEN = ("detach", "data")


def _by_switch() -> tuple[CodeRange, ...]:
    """The line of a package that stops a value because a switch of its own says so."""
    frame = torch_caller()
    line = None if frame is None else CodeRange(frame.f_code.co_filename, frame.f_lineno, None)
    return (line,) if line is not None and switch_around(line.filename, line.line) else ()


def _viewed(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or what it is a view of where that was taken while no graph was recorded."""
    base = tensor._base
    return tensor if base is None or tensor.grad_fn is not None else base


def _live(given: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return [t for t in given if t.requires_grad and t.is_floating_point()]


def _moved(
    name: str,
    args: tuple[Any, ...],
    given: Sequence[torch.Tensor],
    outcome: Any,
    step: float,
) -> Any:
    """What an operation gave, which may have written one of its arguments, with new values."""
    if name == "__setitem__":
        outcome.data[args[1]] = _changed(args[2], step)
        return outcome
    if isinstance(outcome, torch.Tensor) and any(outcome is t for t in given):
        outcome.data.copy_(_changed(outcome, step))
        return outcome
    return _changed(outcome, step)


def _written(args: tuple[Any, ...], outcome: Any) -> tuple[Any, ...]:
    """What an operation gave, and what it wrote through a view."""
    in_place = isinstance(outcome, torch.Tensor) and bool(args) and outcome is args[0]
    base = outcome._base if in_place else None
    return (outcome,) if base is None or base.requires_grad else (outcome, base)


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
