"""What may go wrong without a message: gathered while recording, judged afterwards.

The recorder tells what happens; this hands it to the watchers of `silent`.  All calls come with
torch functions disabled.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence, Set
from types import FrameType
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from ..observe.call_sites import CallFrame, CallSites
from ..observe.event_log import EventLog
from ..observe.tensor_facts import quiet, requiring_grad, storage, tensors_in
from .contents import Content
from .copied_inputs import CopiedInputs
from .equal_sides import agree
from .finding import CandidateFault, Mark, Weak, weak
from .frozen_steps import FrozenSteps
from .graph_cuts import Cuts
from .graph_outputs import GraphOutputs
from .handed_gradients import HandedGradients, has_own_function
from .hidden_overwrites import Aliased, Overwrites, Overwritten
from .kept_gradients import KeptGradients
from .kept_values import KeptValues
from .last_rounds import LastRounds
from .nonfinite import NonFiniteLeaves
from .parameter_owners import InFunctions
from .partial_cuts import partial_cut
from .piled_hooks import PiledHooks
from .stopped_gradients import StoppedGradients
from .unrecorded_writes import Unrecorded
from .unused_gradients import Gradients

_LOOKS = 3  #: at the arguments of one site
_MAX_SOURCES = 1_000
#: Of a named tuple in half the time.
_new = tuple.__new__


class Detectors:
    """Keeps numbers and weak references; of tensors only memory that numpy may write, for as long
    as others keep it, too, and copies of what was overwritten through `.data`, up to a size.

    `traces`, `aliased`, `shared` and `visited` are read on the recorder's fast path: results that
    lost their graph, living `.data` aliases, whether numpy memory was seen, and the sites whose
    arguments were looked at.
    """

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.blind: set[str] = set()  #: what could not be looked at in the cell, as keys
        self.unrecorded = Unrecorded(log, self.blind)
        self.kept = KeptValues(log, self.blind)
        self.own = KeptGradients()
        self.rounds = LastRounds(log)
        self.cuts = Cuts()
        self.copied = CopiedInputs(log, self.cuts)
        self.gradients = Gradients(log, self.cuts)
        self.overwrites = Overwrites(log, self.blind, self.gradients.by_hand.is_gradient)
        self.owners = InFunctions()
        self.frozen = FrozenSteps(log, self.gradients)
        self.stopped = StoppedGradients(self.gradients, self.cuts)
        self.outputs = GraphOutputs(log)
        self.nonfinite = NonFiniteLeaves()
        self.hooks = PiledHooks()
        self.handed = HandedGradients()
        self.traces = self.cuts.traces
        self.aliased = self.overwrites.aliased
        self.shared = False
        self.visited: set[int] = set()
        self._visits: dict[int, int] = {}
        self._sources: dict[int, Weak] = {}
        self._told = self._looked = 0
        self._equal: dict[int, Mark] = {}  #: differences whose sides had the same numbers
        self._roots: dict[int, Mark] = {}  #: the backwards of this cell by their sites

    # Calls

    def saving(self, args: tuple[Any, ...], site: int) -> None:
        """Nodes were made from these arguments and may have saved them: is one numpy's memory?

        Such a storage cannot be resized.  Each site is looked at a few times; when one was found,
        always.  No mode sees `torch.FloatTensor(numbers)` being made: it shows here.
        """
        first = site not in self.visited
        if first:
            self._visit(site)
        with quiet():
            mark = Mark(site, self.log.clock)
            for tensor in tensors_in(args):
                if (first or not tensor.requires_grad) and _foreign_memory(tensor):
                    self.shared = True
                    self.overwrites.share(tensor, mark)
                    self.cuts.appeared(tensor)
                elif first:
                    self.cuts.appeared(tensor)
            self.overwrites.look(mark)

    def subtracted(self, args: tuple[Any, ...], site: int) -> None:
        """A difference of these was computed, at one of the first calls of its line."""
        with quiet():
            if agree(args):
                self._equal[site] = Mark(site, self.log.clock)

    def _visit(self, site: int) -> None:
        self._visits[site] = looks = self._visits.get(site, 0) + 1
        if looks == _LOOKS:
            self.visited.add(site)
            del self._visits[site]

    def spread(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        self.cuts.spread(args, kwargs, result)

    def ended(self, args: tuple[Any, ...], result: Any, site: int) -> None:
        self.cuts.ended(args, result, _new(Mark, (site, self.log.clock, True)))

    def beside(self, args: tuple[Any, ...], results: tuple[Any, ...], site: int) -> None:
        """An operation gave what has no derivative, as indices, beside what has."""
        with quiet():
            if any(not out.requires_grad for out in tensors_in(results)):
                self.cuts.beside(args, results, _new(Mark, (site, self.log.clock, True)))

    def cut(self, source: Tensor, result: Any, site: int, way: str) -> None:
        self.cuts.cut(source, result, _new(Mark, (site, self.log.clock, True)), way)

    def derivatives(self, roots: tuple[Tensor, ...], site: int) -> None:
        """Derivatives of `roots` were computed without a graph of their own."""
        self.cuts.derivatives(roots, _new(Mark, (site, self.log.clock, True)))

    def derived(self, roots: tuple[Tensor, ...], results: tuple[Tensor, ...], site: int) -> None:
        """Derivatives of `roots` were computed with a graph of their own, as was asked for."""
        self.cuts.derived(roots, results, _new(Mark, (site, self.log.clock, True)))

    def parameter(self, source: Tensor, result: Tensor, site: int) -> None:
        self.cuts.parameter(source, result, Mark(site, self.log.clock))

    def parameter_of_values(self, source: Tensor, result: Tensor) -> None:
        """`result`, a parameter, was made of values that may have left the graph before."""
        self.cuts.handed_on(source, result)

    # Memory

    def got_data(self, source: Tensor, result: Tensor, site: int) -> None:
        """`result` is `source.data`: when it is gone it is forgotten."""
        key, aliased, traces = id(result), self.aliased, self.traces

        def forget(_: object) -> None:
            aliased.pop(key, None)
            traces.pop(key, None)

        held, memory = Weak(result, forget), storage(result)
        self.log.alias(result, source, memory, site, held)
        mark = _new(Mark, (site, self.log.clock, True))
        of = self._sources.get(id(source))
        if of is None or of() is not source:
            of = self._remember_source(source)
        aliased[key] = held, _new(Aliased, (of, mark))
        if source.requires_grad:
            self.cuts.cut(source, result, mark, "data", memory, held)
        else:
            self.cuts.idle.add(site)

    def _remember_source(self, source: Tensor) -> Weak:
        """The reference to a tensor whose `.data` is read: a loop asks for it in every round."""
        if len(self._sources) == _MAX_SOURCES:
            self._sources.clear()
        of = self._sources[id(source)] = weak(source)
        return of

    def not_seen_coming(self, tensor: Tensor) -> Overwritten | None:
        """As `before_write` for one that has been written already."""
        return self.overwrites.not_seen_coming(tensor)

    def hidden_write(
        self,
        tensor: Tensor,
        args: tuple[Any, ...],
        clock: int,
        site: int,
        nodes: int,
        before: Overwritten,
    ) -> None:
        """A `.data` alias was written: where its operands come from goes on in it."""
        mark = _new(Mark, (site, clock, True))
        if before.saved or self.overwrites.memories:
            self.overwrites.hidden_write(tensor, args, mark, nodes, before)
        written = before.alias.source()
        if written is None:
            self.cuts.spread(args, {}, tensor)
            return
        if written.requires_grad and (written._base is not None or not written.is_leaf):
            self.unrecorded.changed(written, mark, before.alias.mark, before.content)
        if len(args) > 1 and self._gave(written, args[1:], mark):
            self.cuts.spread(args, {}, tensor)

    def _gave(self, target: Tensor, given: tuple[Any, ...], mark: Mark) -> bool:
        """Values were written past the graph of `target`: what they came from is cut off.

        Whether some had been before."""
        sources = requiring_grad(given)
        if sources:
            self.cuts.written(target, sources, mark, "written")
        return bool(self.traces) and self.cuts.spread(given, {}, target)

    def wrote_outside(self, target: Tensor, given: tuple[Any, ...], site: int) -> None:
        """An operation wrote `target` while no graph was recorded."""
        self.cuts.written(target, tensors_in(given), Mark(site, self.log.clock), "no_grad")

    def before_replacing(self, tensor: Tensor, site: int) -> Content | None:
        """What a tensor holds that is about to get other memory."""
        return self.overwrites.before_replacing(tensor, Mark(site, self.log.clock))

    def replaced_data(
        self,
        tensor: Tensor,
        given: Tensor,
        clock: int,
        site: int,
        nodes: int,
        before: Content | None,
    ) -> None:
        mark = Mark(site, clock)
        self._gave(tensor, (given,), mark)
        self.cuts.handed_to(tensor, (given,))
        self.overwrites.replaced_data(tensor, mark, nodes, before)
        self.unrecorded.changed(tensor, mark, None, before)

    def wrote_itself(
        self, tensor: Tensor, frame: FrameType, clock: int, site: int, steps: Sequence[CallFrame]
    ) -> None:
        """A tensor without a graph was an operand of the write to it."""
        self.own.wrote(tensor, self.gradients, frame, steps, Mark(site, clock, made=False))

    def in_function(self, tensor: Tensor, frame: FrameType, clock: int, site: int) -> None:
        self.overwrites.in_function(tensor, frame, Mark(site, clock))
        if self.handed.backward is not None:
            self.handed.wrote(tensor, frame, Mark(site, clock, made=False))

    def to_numpy(self, tensor: Tensor, site: int, clock: int) -> None:
        self.shared = True
        self.overwrites.share(tensor, Mark(site, clock), here=True)
        self.cuts.to_numpy(tensor, Mark(site, clock))

    def appeared(self, tensor: Tensor, given: Any) -> None:
        self.cuts.appeared(tensor, given)

    # Gradients

    def given(self, optimizer: Optimizer) -> None:
        self.gradients.given(optimizer)

    def read_gradient(self, leaf: Tensor, site: int) -> None:
        self.gradients.by_hand.read(leaf, Mark(site, self.log.tick()))

    def clipped(self, leaf: Tensor, there: bool, site: int) -> None:
        self.gradients.clipped(leaf, there, Mark(site, self.log.tick()))

    def zeroed(self, optimizer: Any, clock: int, site: int) -> None:
        self.gradients.zeroed(optimizer, Mark(site, clock))
        self.frozen.cleared(None if optimizer is None else self.gradients.cleared_by(optimizer))

    def before_backward(
        self,
        roots: tuple[Tensor, ...],
        inputs: tuple[Tensor, ...] | None,
        clock: int,
        site: int,
        whole: bool,
    ) -> None:
        """`inputs` are the tensors whose gradient is asked for, None for all leaves; `whole` is
        False for torch.autograd.grad, which fills no `.grad`."""
        mark = Mark(site, clock)
        if self.log.user_code_in_backward and any(r.device.type != "cpu" for r in roots):
            self.blind.add("device_threads")  # function modes are a thread's own
        self.handed.backward = mark
        self.overwrites.before_backward(roots, mark)
        self.unrecorded.before_backward(roots, inputs, mark)
        self.gradients.by_hand.asked.update(map(id, inputs or ()))
        if not whole and inputs:
            self.copied.before_backward(roots, inputs, mark)
        if whole:
            self._roots[site] = mark
            self.kept.before_backward(roots, mark)
            self.rounds.before_backward(roots, mark)
            self.cuts.before_backward(roots, mark)
            self.gradients.before_backward(roots, mark)
            self.frozen.before_backward(roots)
            self.outputs.before_backward(roots, mark)

    def after_backward(self) -> None:
        self.handed.backward = None
        self.gradients.after_backward()

    def before_step(self, optimizer: Optimizer, parameters: list[Tensor], site: int) -> None:
        mark = Mark(site, self.log.clock)
        self.gradients.before_step(optimizer, parameters, mark)
        self.cuts.unused.before_step(parameters)
        self.hooks.before_step(parameters, self.gradients.last_backward, mark)

    def after_step(
        self,
        optimizer: Optimizer,
        parameters: list[Tensor],
        unbumped: bool,
        clock: int,
        site: int,
        names: Mapping[str, Any],
    ) -> None:
        """`names` are those of the program that steps."""
        mark = Mark(site, clock)
        if unbumped and any(group.get("fused") for group in optimizer.param_groups):
            self.overwrites.stepped(parameters, mark)
        followed = self.gradients.follow(optimizer)
        # A closure has given gradients by now; when the last step was is still known.
        self.frozen.after_step(followed, parameters, mark)
        self.stopped.after_step(followed, parameters, mark)
        self.gradients.after_step(optimizer, parameters, mark)
        self.nonfinite.stepped(parameters, self.gradients.last_backward)
        self.owners.stepped(followed, names, self.gradients)

    # Judging

    @property
    def stepped_lately(self) -> bool:
        return self.gradients.last_step.clock > self._told

    def ended_cell(self, namespace: Mapping[str, Any]) -> None:
        """Look, once, at what a cell has left behind."""
        backward = self.gradients.last_backward
        if backward.clock > max(self._told, self._looked):
            self._looked = self.log.clock
            found = [*self.nonfinite.look(self.gradients.leaves, namespace, backward)]
            self.gradients.found += found or self.nonfinite.left_behind()
            self.gradients.found += self.gradients.zeros.left_behind()
            self.gradients.found += self.gradients.by_hand.left_over(backward)
            self.gradients.found += self.frozen.left_behind()
            self.gradients.found += self.stopped.left_behind()

    def begin(self) -> None:
        """A cell begins: what the last one showed was told."""
        self._told = self.log.clock
        self.blind.clear()
        self.overwrites.found.clear()
        self.unrecorded.found.clear()
        self.kept.begin()
        self.own.begin()
        self.copied.begin()
        self.rounds.begin()
        with quiet():
            self.overwrites.let_go()
            self.gradients.begin(self._told)
        self.nonfinite.begin()
        self.hooks.begin()
        self.owners.begin()
        self.frozen.begin()
        self.stopped.begin(self._told)
        self.outputs.begin()
        self.cuts.begin(self._told)
        self.handed.written.clear()
        self._roots.clear()

    def written_gradients(self) -> CandidateFault | None:
        """Where a gradient was written that other tensors may have, too."""
        return self.handed.suspect(self.gradients.last_backward)

    def after_functions(self, is_user_code: Callable[[str], bool]) -> CandidateFault | None:
        """A backward through custom Functions of the program's own."""
        backward = self.gradients.last_backward
        ran = self.log.user_code_in_backward and backward.clock > self._told
        if not ran or not has_own_function(is_user_code):
            return None
        return CandidateFault("gradient-ignored", {"backward": (backward,)})

    def equal_sides(self) -> CandidateFault | None:
        """Differences of equal numbers that both have a graph, before a backward: only another run
        of the cell tells whether their gradients take each other away."""
        backward = self.gradients.last_backward
        found = tuple(mark for mark in self._equal.values() if mark.clock > self._told)
        if not found or backward.clock <= self._told:
            return None
        return CandidateFault("cancelled-difference", {"operation": found, "backward": (backward,)})

    def partial_cuts(
        self,
        sites: CallSites,
        is_helper: Callable[[int], bool],
        conditions: Callable[[int], Set[ast.AST]],
    ) -> CandidateFault | None:
        """Where values left the graph that a loss of the cell may depend on."""
        roots = sorted(self._roots.values(), key=lambda mark: mark.clock, reverse=True)
        lost = {m.site for s in self.gradients.graph_cuts() if s.sure for m in s.marks["cut"]}
        told = self.cuts.of_terms_with(lost)
        return partial_cut(self.cuts, sites, roots, self._told, is_helper, conditions, told)

    def suspects(self) -> tuple[CandidateFault, ...]:
        """What the cell that ended showed, one suspect per name and guilty site."""
        known = {m.site for s in self.overwrites.found for m in s.marks.get("changed", ())}
        cuts = self.gradients.graph_cuts()
        told = {mark.site for suspect in cuts for mark in suspect.marks["cut"]}
        terms = [
            *self.gradients.terms_without_gradient(self._told),
            *self.gradients.terms_unused(self._told),
            *self.gradients.generated,
        ]
        unrecorded = [s for s in self.unrecorded.found if s.marks["written"][0].site not in known]
        found = (
            *(*self.overwrites.found, *unrecorded),
            *(*self.gradients.found, *self.gradients.stale.found, *self.outputs.found),
            *self.copied.found.values(),
            *(*cuts, *(t for t in terms if t.marks["cut"][0].site not in told)),
        )
        unique = {(s.name, *(m[0].site for m in s.marks.values())): s for s in reversed(found)}
        recent = [s for s in unique.values() if _last(s) > self._told]
        return tuple(sorted(recent, key=_last))


def _last(suspect: CandidateFault) -> int:
    return max(mark.clock for marks in suspect.marks.values() for mark in marks)


def _foreign_memory(tensor: Tensor) -> bool:
    """Whether the memory came from outside torch (numpy, a buffer, a mapped file)."""
    try:
        return not tensor.untyped_storage().resizable()
    except (RuntimeError, NotImplementedError):
        return False
