"""What the recorder notes of a call that ran: nodes made, memory written, aliases, gradients.

What it notes per call is small: the autograd sequence numbers before and after (so every node made
meanwhile belongs to this call, nodes made inside torch's composite operations included) and, for
calls that may write, version counters.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

from torch import Tensor
from torch._C._autograd import _get_sequence_nr as sequence

from ...custom_function import forward_frames
from ..detect.detectors import Detectors
from ..detect.finding import Mark
from ..detect.hidden_overwrites import Aliased, Overwritten
from .call_sites import CallSites
from .event_log import EventLog
from .tensor_facts import (
    address,
    any_requires_grad,
    is_unasked,
    quiet,
    requires_grad_at_sight,
    storage,
    tensors_in,
    version,
)
from .torch_functions import FunctionTable

NO_KEYWORDS: dict[str, Any] = {}
#: Of a named tuple in half the time.
_new = tuple.__new__


class EventNotes:
    """Notes into `log` what calls did.

    `log`, `sites`, `operations` and `suspicion` outlive it: one recording spans several cells.
    An error of ours is kept in `broken`: from then on nothing is noted.
    """

    def __init__(
        self, log: EventLog, sites: CallSites, operations: FunctionTable, suspicion: Detectors
    ) -> None:
        self.log = log
        self.sites = sites
        self.operations = operations
        self.suspicion = suspicion
        self.broken: Exception | None = None
        self.rests = False  #: it has seen enough of this cell
        self.seen = sequence()  #: nodes below this number are accounted for
        self._here = sites.here
        self._append = log.made.append
        self._traces = suspicion.traces
        self._aliased = suspicion.aliased
        self._alias_of = suspicion.overwrites.alias
        self._look_before = suspicion.overwrites.before_write
        self._ended_at = suspicion.cuts.ended
        self._cut = suspicion.cuts.cut
        self._spread = suspicion.cuts.spread
        self._detaches = operations.number("detach")
        self._zeroes = operations.number("zero_grad")
        self._subtraction = operations.number("sub")

    @property
    def is_over(self) -> bool:
        """Whether nothing more is noted in this cell."""
        return self.rests or self.broken is not None

    # Nodes

    def noted(
        self,
        before: int,
        after: int,
        args: tuple[Any, ...],
        result: Any,
        frame: FrameType,
        operation: int,
    ) -> int:
        """A call is over: it made nodes, or it ended the graph of its arguments.

        Its site where that was asked for, else 0.
        """
        site = 0
        try:
            if after == self.seen:
                self._ended(args, result, frame, operation)
                return 0
            if before != self.seen:
                self.made_unseen(before, frame)
            if after != before:
                site = self._here(frame, operation)
                log = self.log
                log.clock = clock = log.clock + 1
                self._append((before, after, site, clock))
                suspicion = self.suspicion
                first = site not in suspicion.visited
                if first or suspicion.shared:
                    if first and operation == self._subtraction:
                        suspicion.subtracted(args, site)
                    suspicion.saving(args, site)
                if isinstance(result, tuple):
                    suspicion.beside(args, result, site)
            else:  # the first call inside a custom Function
                self._ended(args, result, frame, operation)
            self.seen = after
        except Exception as error:
            self.broken = error
        return site

    def passed(
        self, before: int, args: tuple[Any, ...], result: Any, frame: FrameType, operation: int
    ) -> int:
        """A call during which the recorder had stepped aside is over; as `noted`."""
        site = 0
        if not self.is_over:
            site = self.noted(before, sequence(), args, result, frame, operation)
            if self._traces:
                self._spread(args, NO_KEYWORDS, result)
        return site

    def made_unseen(self, before: int, frame: FrameType) -> None:
        """Nodes between two calls: made by `Function.apply`, which no function mode sees.

        Its node is made before `forward` runs, so the first torch call inside `forward` tells.
        """
        found = forward_frames(frame)
        site = 0 if found is None else self.sites.here(found[1], self.operations.number("apply"))
        self.log.made.append((self.seen, before, site, self.log.tick()))
        self.log.user_code_in_backward = True
        self.seen = before

    def _ended(self, args: tuple[Any, ...], result: Any, frame: FrameType, operation: int) -> None:
        """No node was made: where an argument required a gradient, the graph ends here."""
        ends = requires_grad_at_sight(args)
        if ends is False:
            return
        with quiet():
            if ends or any_requires_grad(args):
                self.suspicion.ended(args, result, self._here(frame, operation))

    # Writes

    def _write(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
        operation: int,
    ) -> Any:
        """An in-place operation: it writes its first argument, a tensor or a list of them."""
        __tracebackhide__ = True
        target = args[0] if args else None
        if not isinstance(target, Tensor):
            return self.composite(func, args, kwargs, frame, operation)
        asks = requires_grad_at_sight(args)
        if asks is not None:
            old = version(target)
        else:
            with quiet():
                old = version(target)
        site, content = 0, None
        if self._aliased:
            alias = self._alias(target) if asks is None else self._alias_of(target)
            if alias is not None:
                site, content = self._before_write(target, alias, args, frame, operation)
        before = sequence()
        result = func(*args, **kwargs) if kwargs else func(*args)
        after = sequence()
        if after != self.seen:
            site = self.noted(before, after, args, result, frame, operation)
        try:
            if asks is False or (asks and len(args) == 1):
                self.wrote(target, old, frame, operation, args, site, content)
            else:
                with quiet():
                    if after == before and any_requires_grad(args[1:]):
                        site = site or self._here(frame, operation)
                        self.suspicion.wrote_outside(target, args[1:], site)
                    self.wrote(target, old, frame, operation, args, site, content)
        except Exception as error:
            self.broken = error
        if self._traces and (content is None or kwargs):  # else `hidden_write` has done so
            self._spread(args, kwargs, target if result is None else result)  # none: `x[i] = y`
        return result

    def composite(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
        operation: int,
    ) -> Any:
        """A call that may write any argument: the version counters tell which."""
        __tracebackhide__ = True
        with quiet():
            given = [(t, version(t)) for t in tensors_in((*args, *kwargs.values()))]
        contents = {
            id(tensor): self._before_write(tensor, alias, (), frame, operation)[1]
            for tensor, _ in (given if self._aliased else ())
            if (alias := self._alias(tensor)) is not None
        }
        before = sequence()
        result = func(*args, **kwargs)
        after = sequence()
        self.noted(before, after, args, result, frame, operation)
        try:
            with quiet():
                for tensor, old in given:
                    if version(tensor) != old:
                        content = contents.get(id(tensor))
                        self.wrote(tensor, old, frame, operation, content=content)
        except Exception as error:
            self.broken = error
        if self._traces:
            self._spread(args, kwargs, result)
        return result

    def _alias(self, tensor: Tensor) -> Aliased | None:
        """Of a `.data` alias, or a view of one, what it is an alias of."""
        try:
            with quiet():
                return self._alias_of(tensor)
        except Exception as error:
            self.broken = error
        return None

    def _before_write(
        self,
        tensor: Tensor,
        alias: Aliased,
        args: tuple[Any, ...],
        frame: FrameType,
        operation: int,
    ) -> tuple[int, Overwritten | None]:
        """The site of a write through `.data` and what it is about to overwrite."""
        try:
            with quiet():
                site = self._here(frame, operation)
                return site, self._look_before(tensor, alias, args, site)
        except Exception as error:
            self.broken = error
        return 0, None

    def wrote(
        self,
        tensor: Tensor,
        old: int,
        frame: FrameType,
        operation: int,
        args: tuple[Any, ...] = (),
        site: int = 0,
        content: Overwritten | None = None,
    ) -> None:
        """Note a write that took `tensor` past version `old`; `site` where it is known."""
        try:
            new = tensor._version
        except RuntimeError:  # as in `version`
            new = -1
        if new == old and new != -1:
            return
        log = self.log
        site = site or self._here(frame, operation)
        log.clock = clock = log.clock + 1
        if content is None and self._aliased:
            content = self.suspicion.not_seen_coming(tensor)
        known = log.living.get(id(tensor))  # as `log.alias_time`
        alias = known[1] if known is not None and known[0]() is tensor else 0
        own = content is None
        row = clock, site, storage(tensor), tensor._cdata, old, new, own, alias
        log.write_rows.append(row)
        if content is not None:
            with quiet():
                self.suspicion.hidden_write(tensor, args, clock, site, self.seen, content)
        elif tensor.requires_grad:
            with quiet():
                steps = self.sites.all[site].steps
                self.suspicion.kept.wrote(tensor, frame, steps, _new(Mark, (site, clock, False)))
        elif len(args) > 1 and args[1] is tensor:
            with quiet():
                self.suspicion.wrote_itself(tensor, frame, clock, site, self.sites.all[site].steps)
        if log.user_code_in_backward:
            with quiet():
                self.suspicion.in_function(tensor, frame, clock, site)

    def wrote_unversioned(self, tensor: Tensor, site: int, own: bool) -> int:
        """Note a write that left the version as it was; its time."""
        log, where, v = self.log, address(tensor), version(tensor)
        clock, alias = log.tick(), log.alias_time(tensor)
        log.write_rows.append((clock, site, storage(tensor), where, v, v, own, alias))
        return clock

    # Numbers

    def _number(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
        operation: int,
    ) -> Any:
        """A value leaves torch as a Python number: of interest where it has a graph, or had one."""
        __tracebackhide__ = True
        result = func(*args, **kwargs) if kwargs else func(*args)
        source = args[0]
        try:
            if is_unasked(source):
                if source.requires_grad:
                    site = self._here(frame, operation)
                    mark = _new(Mark, (site, self.log.clock, True))
                    self._cut(source, result, mark, "number")
                elif id(source) in self._traces:
                    mark = _new(Mark, (self._here(frame, operation), self.log.clock, True))
                    self.suspicion.cuts.to_number(source, result, mark)
                return result
            with quiet():
                if source.requires_grad:
                    site = self._here(frame, operation)
                    self.suspicion.cut(source, result, site, "number")
        except Exception as error:
            self.broken = error
        return result

    # Aliases

    def _view(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        frame: FrameType,
        operation: int,
    ) -> Any:
        """A call whose result may share the memory of its first argument."""
        __tracebackhide__ = True
        traced = bool(self._traces)  # what leaves the graph here is no argument
        before = sequence()
        result = func(*args, **kwargs) if kwargs else func(*args)
        after = sequence()
        if after != self.seen or type(result) is not Tensor or not args:
            site = self.noted(before, after, args, result, frame, operation)
            self.viewed(args, result, frame, operation, site)
        elif result is not args[0]:
            self._viewed_outside(args, result, frame, operation)
        if traced:
            self._spread(args, kwargs, result)
        return result

    def _viewed_outside(
        self, args: tuple[Any, ...], result: Tensor, frame: FrameType, operation: int
    ) -> None:
        """As `noted` and `viewed` for one tensor that came without a node, in one go: loops by
        hand index what has no graph."""
        try:
            ends = requires_grad_at_sight(args)
            if ends is not None:
                self._note_view(args, result, ends, frame, operation)
                return
            with quiet():
                self._note_view(args, result, any_requires_grad(args), frame, operation)
        except Exception as error:
            self.broken = error

    def _note_view(
        self, args: tuple[Any, ...], result: Tensor, ends: bool, frame: FrameType, operation: int
    ) -> None:
        """`ends`: an argument had a graph."""
        source, site = args[0], 0
        if ends:
            site = self._here(frame, operation)
            self._ended_at(args, result, _new(Mark, (site, self.log.clock, True)))
        elif operation == self._detaches:
            site = self._here(frame, operation)
            self.suspicion.cuts.idle.add(site)
        if isinstance(source, Tensor):
            kept = storage(source)
            if result._base is not None or storage(result) == kept:
                self.log.alias(result, source, kept, site or self._here(frame, operation))

    def viewed(
        self, args: tuple[Any, ...], result: Any, frame: FrameType, operation: int, site: int
    ) -> None:
        """Note what of a result shares the memory of the first argument."""
        source = args[0] if args else None
        if result is source or not isinstance(source, Tensor):
            return
        try:
            if type(result) is Tensor and is_unasked(source):
                kept = storage(source)
                if storage(result) == kept:
                    self.log.alias(result, source, kept, site or self._here(frame, operation))
                return
            with quiet():
                kept = storage(source)
                made = (result,) if type(result) is Tensor else tensors_in((result,))
                for out in made:
                    if out is not source and storage(out) == kept:
                        site = site or self.sites.here(frame, operation)
                        self.log.alias(out, source, kept, site)
        except Exception as error:
            self.broken = error

    # Gradients

    def zeroed(self, optimizer: Any, frame: FrameType) -> None:
        """Gradients were cleared; `optimizer` is None where something else did it."""
        site = self._here(frame, self._zeroes)
        marks = self.log.landmarks
        last = marks[-1] if marks else None
        if last is None or last[1] != site or last[2] != "zero_grad":
            self.suspicion.zeroed(optimizer, self.log.landmark(site, "zero_grad"), site)
