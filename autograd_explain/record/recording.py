"""What watched cells did to their tensors: seen while they ran, told afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, Any

from torch._C._autograd import _get_sequence_nr as sequence

from ..isolation.weak_references import hide
from ..loaded import is_generated
from ..nodes import GraphTraversal, start_of
from ..program import Program
from ..program_index import index_of
from .detect.data_write_derivative import Derivative, derivative_of
from .detect.detectors import Detectors
from .detect.finding import CandidateFault, Mark
from .detect.frozen_steps import told_with_others
from .detect.kept_gradients import kept_gradients
from .detect.kept_outputs import overwritten_outputs
from .detect.kept_readers import read_by_second_name
from .detect.last_rounds import last_round_alone
from .detect.number_into_loss import flows_into, is_helper, may_flow
from .detect.numpy_writer import writer_between
from .detect.parameter_owners import look, out_of_reach, told_once
from .detect.partial_cuts import of_functions, of_samples, switch_at
from .detect.plain_leaves import are_weights
from .detect.read_gradients import by_gradients
from .detect.recording_off import (
    by_library,
    called_directly,
    is_by_program,
    is_in_memory,
    is_only_shown,
    recorded_within,
)
from .detect.shallow_copies import frozen_copies
from .detect.stopped_gradients import left_so
from .detect.straight_through import misplaced
from .detect.uncalled import uncalled
from .observe.backwards import Backwards
from .observe.call_sites import CallSite, CallSites
from .observe.code_positions import CodePosition, conditions_around, spot_of
from .observe.event_log import EventLog
from .observe.formatted_stacks import FormattedStacks
from .observe.function_mode import Recorder
from .observe.graph_modules import GraphModules
from .observe.mode_stack import COMPILED, ModeStack
from .observe.module_hooks import ModuleHooks
from .observe.new_parameters import NewParameters
from .observe.observed_history import ObservedHistory
from .observe.opaque_layers import OpaqueLayers
from .observe.optimizer_steps import StepHooks
from .observe.rest import Rest
from .observe.site_reader import SiteReader
from .observe.tensor_facts import quiet
from .observe.torch_functions import FunctionTable
from .observe.warning_places import warnings_at_home
from .signal import Signal

if TYPE_CHECKING:
    import torch

    from ..incident import Incident
    from ..inspect.history import TraceEvent

#: How far back the graph of a failure is followed to see whether it was made under watch.
_MAX_NODES = 5_000
_UNNUMBERED = 2**63  #: numbers from here on are none (torch 2.13 gives the largest there is)


#: Roles of marks that are no operation, and what they are.
_LANDMARKS = {
    "backward": "backward",
    "last_backward": "backward",
    "step": "step",
    "earlier_step": "step",
    "cleared": "zero_grad",
}


class Recording:
    """The log of a session's watched cells; it goes on from cell to cell.

    Holds numbers, code objects and weak references: no tensor of the program, no frame, no module.
    """

    def __init__(self) -> None:
        hide(self)
        self.log = EventLog()
        self.sites = CallSites()
        self.operations = FunctionTable()
        self.suspicion = Detectors(self.log)
        self.program = Program()
        self._limits: set[str] = set()
        self._since = 0
        self._cell: int | None = None
        self._cells: set[int | None] = set()
        self._watched: list[tuple[int, int]] = []
        self._begun: tuple[int, Recorder] | None = None  #: the recording that goes on

    @property
    def limits(self) -> tuple[str, ...]:
        """What could not be watched in the last cell, as keys: compiled, compile_not_followed,
        traced, mode_removed, log_full, rested, recorder_failed."""
        full = {"log_full"} if len(self.log.made) == self.log.made.maxlen else set()
        return tuple(sorted(self._limits | full))

    @property
    def blind_spots(self) -> tuple[str, ...]:
        """Where the last watched cell could have gone wrong unseen: limits met in it, and
        local_model, saved_values, graph_not_searched, writes_forgotten, values_sampled,
        values_unreadable, device_threads."""
        found = {*self.limits, *self.suspicion.blind}
        if "log_full" in found and self.log.made[0][3] <= self._since:
            found.discard("log_full")  # what was dropped is of earlier cells
        with quiet():
            gradients, since = self.suspicion.gradients, self._since
            if "rested" not in found and out_of_reach(self.sites.namespace, gradients, since):
                found |= {"local_model"}
        return tuple(sorted(found))

    def covers(self, incident: Incident) -> bool:
        """Whether the operations behind this failure were watched."""
        return incident.cell in self._cells and self.saw(_graph_sequences(incident))

    def saw(self, nodes: Iterable[int]) -> bool:
        """Whether nodes of these numbers were made under watch, at lines that were seen."""
        compiled = self._made_in_compiled_code()
        return all(
            self._was_watched(n) and not any(first <= n < end for first, end in compiled)
            for n in nodes
        )

    def _was_watched(self, number: int) -> bool:
        running = () if self._begun is None else ((self._begun[0], _end(self._begun[1])),)
        return any(first <= number < end for first, end in (*self._watched, *running))

    def _made_in_compiled_code(self) -> list[tuple[int, int]]:
        """Ranges of nodes whose lines are unknown: what torch.compile makes of a function keeps
        its name, but not its lines, and where it ran unwatched there is only the call."""
        sites = self.sites.all
        unwatched = self.operations.number(COMPILED)
        own = {
            number
            for number, site in enumerate(sites)
            if site.operation == unwatched or (site.steps and is_generated(site.steps[0].code))
        }
        return [(first, end) for first, end, site, _ in self.log.made if site in own] if own else []

    def history(self, program: Program) -> ObservedHistory:
        """The past as it was observed, told in the lines of `program`."""
        return ObservedHistory(self.log, self.moments(program))

    def moments(self, program: Program) -> SiteReader:
        return SiteReader(self.sites, self.operations.names, program)

    def cuts_behind(
        self, tensor: torch.Tensor | None, program: Program, leaf: torch.Tensor | None = None
    ) -> tuple[TraceEvent, ...]:
        """Where the values of a live tensor left the graph, or of anything that a backward went
        back from, the last such call first; with `leaf` only those below that."""
        with quiet():
            cuts = self.suspicion.cuts.behind(tensor, leaf)
        moments = self.moments(program)
        found = (moments.made(cut.site, cut.clock) for cut in cuts)
        return tuple(m for m in found if m is not None)

    def judged(self) -> tuple[tuple[Signal, ...], tuple[Signal, ...]]:
        """What went wrong silently in the last watched cell; and what the program may well mean:
        worth a line, no alarm."""
        suspects, named = self._suspects(), self._uncalled()
        if any(moment.op == "zero_grad" for s in named for moment in s.moments["named"]):
            suspects = [s for s in suspects if s.name != "gradients-not-cleared"]
        sure = tuple(self._signal(s) for s in suspects if s.sure)
        return (*named, *sure), tuple(self._signal(s) for s in suspects if not s.sure)

    def signals(self) -> tuple[Signal, ...]:
        """What went wrong silently in the last watched cell."""
        return self.judged()[0]

    def notes(self) -> tuple[Signal, ...]:
        """As `signals`, but what the program may well mean."""
        return self.judged()[1]

    def suspicions(self) -> tuple[Signal, ...]:
        """Where something may be wrong: only another run of the cell tells."""
        with quiet():
            written = self.suspicion.written_gradients()
            ran = self.suspicion.after_functions(self.program.is_user_code)
            equal = self.suspicion.equal_sides()
        found = (self._signal(s) for s in (written, ran, equal) if s is not None)
        return (*found, *self.piled_hooks(), *self.frozen_copies(), *self._partial_cuts())

    def frozen_copies(self) -> tuple[Signal, ...]:
        """What was frozen with a shallow copy."""
        with quiet():
            gradients, stepped = self.suspicion.gradients, self.suspicion.stepped_lately
            found = [*frozen_copies(self.sites.namespace, gradients, self.log)] if stepped else []
        return tuple(map(self._signal, found))

    def piled_hooks(self) -> tuple[Signal, ...]:
        """Hooks that were registered again and again."""
        found = self.suspicion.hooks.suspect()
        return () if found is None else (self._signal(found),)

    def _partial_cuts(self) -> tuple[Signal, ...]:
        """Where values left the graph that a loss may depend on."""
        moments = self.moments(self.program)
        with quiet():
            found = self.suspicion.partial_cuts(
                self.sites, lambda s: is_helper(moments.spot(s)), self._conditions
            )
        if found is None:
            return ()
        spots = {
            role: [(m, s) for m in marks if (s := moments.spot(m.site)) is not None]
            for role, marks in found.marks.items()
        }
        flows = [
            (mark, root)
            for root, into in spots["backward"]
            for mark, spot in spots["cut"]
            if mark.site in found.evidence["traced"] or may_flow(spot, into)
        ]
        marks = {
            "cut": tuple(dict.fromkeys(mark for mark, _ in flows)),
            "backward": tuple(dict.fromkeys(root for _, root in flows)),
        }
        return (self._signal(replace(found, marks=marks)),) if flows else ()

    def _conditions(self, site: int) -> set[ast.AST]:
        """What it depends on in the text whether a site runs, in its function and its callers."""
        steps = [spot_of(self.program, step) for step in self.sites.all[site].steps]
        return {found for spot in steps if spot is not None for found in conditions_around(spot)}

    def _suspects(self) -> list[CandidateFault]:
        with quiet():
            self.suspicion.ended_cell(self.sites.namespace)
            found = [of_samples(s, self.sites) for s in self._kept_suspects()]
            found = [of_functions(s, self.sites) for s in found]
            found = [self._without_a_word(s) for s in found]
            moments = self.moments(self.program)
            updated = (by_gradients(s, moments, self.program) for s in found)
            found = [s for s in updated if s is not None]
            cut = {m.site for s in found for m in s.marks.get("cut", ())}
            sums = misplaced(self.suspicion.cuts, moments.spot, self._since)
            found += [s for s in sums if s.marks["cut"][0].site not in cut]
            gradients = self.suspicion.gradients
            found += overwritten_outputs(
                self.sites.namespace, gradients, self.log, self.program, self._since
            )
            told = {m.site for s in found for m in s.marks.get("changed", ())}
            kept = [v for v in self.suspicion.kept.read if v.writes[0].site not in told]
            found += read_by_second_name(kept, self.sites, self.program)
            own, backward = self.suspicion.own.found.values(), gradients.last_backward
            found += kept_gradients(own, backward, self.sites, self.program)
            looks, step = self.suspicion.rounds.looks, gradients.last_step
            found += last_round_alone(looks, step, self.sites, self.program)
            if self.suspicion.stepped_lately:
                owners = look(self.sites.namespace, gradients, self.log)
                owners = [s for s in owners if are_weights(s, self.program)]
                found = told_with_others(told_once(found, owners, self.sites.namespace))
                left = self.suspicion.owners.left_behind()
                found += [s for s in left if are_weights(s, self.program)]
        return self._falsifying([self._with_numbers_followed(s) for s in found])

    def _uncalled(self) -> tuple[Signal, ...]:
        """The methods that a line of the cell names and does not call."""
        recent = takewhile(lambda row: row[3] > self._since, reversed(self.log.made))
        ran = (step.code for _, _, site, _ in recent for step in self.sites.all[site].steps)
        followed = self.suspicion.gradients.followed.values()
        first = {"parameters": tuple(f.first for f in followed if f.first is not None)}
        made = self.log.made and self.log.made[-1][3] > self._since
        found = uncalled(self.program, self._cell, ran) if made else ()
        return tuple(Signal("method-not-called", {"named": (moment,)}, first) for moment in found)

    def _kept_suspects(self) -> list[CandidateFault]:
        found = (left_so(s, self.sites, self.program) for s in self.suspicion.suspects())
        return [s for s in found if s is not None]

    def _falsifying(self, suspects: list[CandidateFault]) -> list[CandidateFault]:
        """Leaves out writes that no node stands for and that falsify no gradient.

        In doubt it is meant: a gradient that passes straight through a rounding.  Such a rounding
        is often one of several writes, `mul_`, `round_` and `div_`: it alone is told then."""
        judged = [(s, *self._derivative(s)) for s in suspects]
        unknown = {id(s.evidence["tensor"]) for s, d, _ in judged if d is Derivative.UNKNOWN}
        found, told = [], set()
        for suspect, derivative, statement in judged:
            if derivative is None:
                found.append(suspect)
                continue
            tensor = id(suspect.evidence["tensor"])
            meant = derivative is Derivative.UNKNOWN
            if derivative is Derivative.ONE or (tensor in unknown and not meant):
                continue
            if (tensor, statement) not in told:  # a chain of writes is one
                told.add((tensor, statement))
                found.append(replace(suspect, sure=not meant))
        return found

    def _derivative(self, suspect: CandidateFault) -> tuple[Derivative | None, ast.stmt | None]:
        """That of a write that no node stands for, and its statement; None for other suspects."""
        if suspect.evidence.get("way") != "unrecorded":
            return None, None
        spot = self.moments(self.program).spot(suspect.marks["written"][0].site)
        if spot is None:
            return Derivative.UNKNOWN, None
        return derivative_of(spot), spot.statement

    def _without_a_word(self, suspect: CandidateFault) -> CandidateFault:
        """What ran without recording is taken to be meant where the program says so: of what only
        a library turned off, the user's lines say nothing."""
        if suspect.name != "graph-cut" or suspect.evidence["way"] != "no_grad":
            return suspect
        site = self.sites.all[suspect.marks["cut"][0].site]
        lines = [spot_of(self.program, step) for step in site.steps]
        if not is_by_program(lines, self.program):
            off = by_library(suspect.evidence["stack"], site.steps)
            within = called_directly(suspect.evidence["stack"], site.steps)
            kept = is_in_memory(lines[:within], self.program)
            told = {"kept": within} if kept else {"turned_off": off}
            return replace(suspect, sure=True, evidence={**suspect.evidence, **told})
        if suspect.sure:
            return suspect
        within = recorded_within(lines, self.program)
        hidden = is_only_shown(self._apart(site, suspect), self.program)
        if not hidden and not is_in_memory(lines[:within], self.program):
            return suspect
        return replace(suspect, sure=True, evidence={**suspect.evidence, "kept": max(within, 1)})

    def _apart(self, site: CallSite, suspect: CandidateFault) -> CodePosition | None:
        """Where what ran without recording parts from what led to the backward."""
        backward = suspect.marks.get("backward") or suspect.marks.get("last_backward")
        if backward is None:
            return None
        led = self.sites.all[backward[0].site].steps
        pairs = zip_longest(reversed(site.steps), reversed(led))
        own = next((one for one, other in pairs if one is not None and one != other), None)
        return None if own is None else spot_of(self.program, own)

    def _with_numbers_followed(self, suspect: CandidateFault) -> CandidateFault:
        """A number taken from a tensor leaves no trace in torch; the text tells whether it goes
        into the loss."""
        last = suspect.marks.get("last_backward")
        if suspect.sure or last is None or suspect.evidence.get("way") != "number":
            return suspect
        moments = self.moments(self.program)
        root = moments.spot(last[0].site)
        cuts = [moments.spot(m.site) for m in suspect.marks["cut"]]
        if root is None or not any(c is not None and flows_into(c, root) for c in cuts):
            return suspect
        known = self.suspicion.cuts.cuts
        first = {b: known[b] for m in suspect.marks["cut"] for b in known[m.site].behind}
        left = tuple(Mark(c.site, c.clock) for c in first.values() if c.way == "operation")
        marks = {**suspect.marks, "cut": left or suspect.marks["cut"], "backward": last}
        evidence = {**suspect.evidence, "way": "operation"} if left else suspect.evidence
        return replace(suspect, marks=marks, evidence=evidence, sure=True)

    def _signal(self, suspect: CandidateFault) -> Signal:
        moments = self.moments(self.program)
        told: dict[str, tuple[TraceEvent, ...]] = {}
        for role, marks in suspect.marks.items():
            lines = [_moment(moments, role, mark) for mark in marks]
            told[role] = tuple(m for m in lines if m is not None)
        if "unchanged" in suspect.marks and "changed" not in told:
            before, after = suspect.marks["unchanged"][0], suspect.marks["noticed"][0]
            sites = self.sites.all
            names = _arrays(moments, suspect.marks.get("shared", ()))
            writer = writer_between(
                self.program, sites[before.site], sites[after.site], after.clock, names
            )
            told["changed"] = () if writer is None else (writer,)
        cuts = suspect.marks.get("cut", ())
        switch = next(filter(None, (switch_at(self.sites, cut.site) for cut in cuts)), "")
        return Signal(suspect.name, told, {**suspect.evidence, "switch": switch})

    @contextmanager
    def watching(self, program: Program, cell: int | None) -> Iterator[Recording]:
        """Record while the body runs."""
        self.program = program
        self._since = self.log.clock
        self._cell = cell
        self._cells.add(cell)
        own = frozenset(
            s.filename for s in index_of(program).runs if s.cell == cell and cell is not None
        )
        self.sites.enter(program.is_user_code, cell, own)
        self.suspicion.begin()
        self._limits.clear()
        recorder = Recorder(self.log, self.sites, self.operations, self.suspicion)
        presence = ModeStack(recorder)
        hooks = StepHooks(recorder, presence, program.is_user_code)
        layers = OpaqueLayers(recorder, presence)
        # Of a whole program the loop is only a part.
        backwards = Backwards(recorder, presence, None if cell is None else Rest())
        parameters = NewParameters(recorder, presence)
        graphs = GraphModules(recorder, presence)
        registered = ModuleHooks(recorder, presence)
        stacks = FormattedStacks(presence)
        self._begun = first, _ = sequence(), recorder
        try:
            with ExitStack() as stack:
                stack.enter_context(warnings_at_home())
                presence.enter()
                stack.callback(presence.leave)
                hooks.enter()
                stack.callback(hooks.leave)  # puts the recorder back: while it may be there
                layers.enter()
                backwards.enter()
                parameters.enter()
                graphs.enter()
                registered.enter()
                stacks.enter()
                yield self
        finally:
            self.sites.leave()
            self._limits |= presence.limits
            self.failure = recorder.broken
            if recorder.broken is not None:
                self._limits.add("recorder_failed")
            self._watched.append((first, _end(recorder)))
            self._begun = None

    failure: Exception | None = None


def watch(program: Program, cell: int | None, recording: Recording | None = None) -> Any:
    """A context manager that records its body, continuing `recording` where one is given."""
    return (recording if recording is not None else Recording()).watching(program, cell)


def _end(recorder: Recorder) -> int:
    """The first node that a recorder has not seen: one that failed or rests saw nothing from there
    on."""
    return recorder.seen if recorder.is_over else sequence()


def _moment(moments: SiteReader, role: str, mark: Mark) -> TraceEvent | None:
    what = _LANDMARKS.get(role)
    if what is not None:
        return moments.mark(mark.site, mark.clock, what)
    if mark.made:
        return moments.made(mark.site, mark.clock)
    return moments.wrote(mark.site, mark.clock, None)


def _arrays(moments: SiteReader, shared: tuple[Mark, ...]) -> frozenset[str]:
    """What the program calls the arrays that it got from tensors: `a` of `a = t.numpy()`."""
    spots = [moments.spot(mark.site) for mark in shared]
    given = [s.statement for s in spots if s is not None and isinstance(s.statement, ast.Assign)]
    return frozenset(ast.unparse(t) for statement in given for t in statement.targets)


def _graph_sequences(incident: Incident) -> Iterator[int]:
    """Sequence numbers of the graph behind a failed backward; leaves have none, nor has what stands
    for a derivative that is not implemented."""
    from ..inspect.live.roots import roots_of

    with quiet():
        starts = [start_of(root) for root in roots_of(incident.frames)]
    for found in GraphTraversal(starts, limit=_MAX_NODES):
        if found.sequence < _UNNUMBERED:
            yield found.sequence
