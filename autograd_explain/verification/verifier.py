"""Try every proposal and order the rewrites by what running them showed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..model import Edits, Outcome, Reason, Rewrite, Safety
from ..rewrite.engine.proposal import Proposal
from .cells import cells_of
from .checkpoint import Checkpoint
from .messages import write_message
from .plan import (
    ORIGINAL,
    GradientDifference,
    IgnoredGradient,
    NonFinite,
    Plan,
    Reference,
    SeveredValue,
    Trial,
    Verdict,
)
from .process import Child, Crash, can_fork, fork_child, spawn_child, uses_device
from .redefine import bodies_alone
from .request import Request

#: What a process that overstays its time gets to report what it has.
_GRACE = 0.5
#: Why cells do not run again, whatever is edited in them.
_STRANDED = frozenset(
    "needs_file needs_network needs_subprocess needs_input cuda not_replayable".split()
)
_RANK = {Outcome.VERIFIED: 0, Outcome.RUNS: 1, Outcome.DIFFERS: 1, Outcome.NOT_TRIED: 3}


def verify(
    proposals: Sequence[Proposal], request: Request, *, keep_all: bool = False
) -> tuple[Rewrite, ...]:
    """The proposals as rewrites with what running them showed, verified ones first.

    One that fails or differs from the reference is left out, unless its difference is intended
    (`keep_all` leaves none out); one that corrects the program and differs goes first.
    """
    if keep_all:
        stay, fail = _verified(proposals, request, strictly=False)
        return (*stay, *fail)
    return verify_all(proposals, request)[0]


def verify_all(
    proposals: Sequence[Proposal], request: Request
) -> tuple[tuple[Rewrite, ...], tuple[Rewrite, ...]]:
    """What `verify` gives, and what it leaves out."""
    return _verified(proposals, request, strictly=True)


def _verified(
    proposals: Sequence[Proposal], request: Request, strictly: bool
) -> tuple[tuple[Rewrite, ...], tuple[Rewrite, ...]]:
    """`strictly`: that a program fails with the state which its unedited functions have made shows
    nothing."""
    trials = _Trials(request)
    for index, proposal in enumerate(proposals):
        trials.add(index, proposal)
    verdicts = trials.run()
    if strictly:
        failed = (n for n in trials.untried if verdicts[n].outcome is Outcome.FAILS)
        verdicts |= {n: trials.untried[n] for n in failed}
    found: dict[bool, list[tuple[int, Rewrite]]] = {True: [], False: []}
    corrected = any(_corrects(p, verdicts.get(n)) for n, p in enumerate(proposals))
    for index, proposal in enumerate(proposals):
        verdict = verdicts.get(index, _not_tried(index, "interrupted"))
        verdict = _open_to_doubt(verdict) if corrected else verdict
        pair = _rank(proposal, verdict), _rewrite(proposal, verdict)
        found[_stays(proposal, verdict)].append(pair)
    stay, gone = (sorted(found[stays], key=lambda pair: pair[0]) for stays in (True, False))
    return tuple(r for _, r in stay), tuple(r for _, r in gone)


def _corrects(proposal: Proposal, verdict: Verdict | None) -> bool:
    """Whether it makes the program another one, so that the program as it is may not be meant."""
    return proposal.corrects and verdict is not None and verdict.outcome is Outcome.DIFFERS


def _open_to_doubt(verdict: Verdict) -> Verdict:
    """A verdict of agreement with a program that may not be what is meant."""
    if verdict.outcome is not Outcome.VERIFIED:
        return verdict
    values = {"why": "ambiguous"}
    return replace(verdict, outcome=Outcome.RUNS, reason=Reason("no_reference", values))


def try_edits(edits: Edits, request: Request) -> Rewrite:
    """Edits that nobody proposed, tried as a rewrite is."""
    return verify([Proposal("", edits)], request, keep_all=True)[0]


def reference_gradients(request: Request) -> tuple[GradientDifference, ...] | None:
    """The gradients of the original program that differ from the reference; None where that is not
    known: nothing was run, or no reference is sound."""
    if request.reference is Reference.NONE:
        return None
    verdict = _Trials(request, gradients=True).run().get(ORIGINAL)
    known = verdict is not None and verdict.outcome in (Outcome.VERIFIED, Outcome.DIFFERS)
    return verdict.gradients if verdict is not None and known else None


def evidence_against(proposals: Sequence[Proposal], request: Request) -> tuple[int | None, ...]:
    """For each proposal `Verdict.against`; None where that was not found out.  Raises
    KeyboardInterrupt."""
    trials = _Trials(request, against=True)
    for index, proposal in enumerate(proposals):
        trials.add(index, proposal)
    verdicts = trials.run()
    if trials.interrupted:
        raise KeyboardInterrupt
    known = {n: v.against for n, v in verdicts.items() if v.outcome is Outcome.RUNS}
    return tuple(known.get(n) for n in range(len(proposals)))


def origin_of_nonfinite(request: Request) -> NonFinite | None:
    """Where the numbers of the original program stop being finite; None where a run of it does not
    show that."""
    verdict = _Trials(request, nonfinite=True).run().get(ORIGINAL)
    return verdict.nonfinite if verdict is not None else None


def severed_values(request: Request) -> tuple[SeveredValue, ...] | None:
    """The values that losses of the original program depend on and that its gradients lack, as far
    as a run of it shows them; None where there was no such run."""
    verdict = _Trials(request, severed=True).run().get(ORIGINAL)
    return verdict.severed if verdict is not None and _ran(verdict) else None


def ignored_gradients(request: Request) -> tuple[IgnoredGradient, ...] | None:
    """The custom Functions of the original program whose gradients do not depend on what comes in,
    as far as a run of it shows them; None where there was no such run."""
    verdict = _Trials(request, ignored=True).run().get(ORIGINAL)
    return verdict.ignored if verdict is not None and _ran(verdict) else None


def _ran(verdict: Verdict) -> bool:
    return verdict.outcome is not Outcome.NOT_TRIED


@dataclass(frozen=True)
class _Start:
    """A state to replay from: the live copy, or cells run from an empty session.  `redefined`:
    edits of what ran before the copy was made give its functions other code."""

    copied: bool
    shared: bool = True
    redefined: bool = False


_COPIED = _Start(copied=True)
_REDEFINED = _Start(copied=True, redefined=True)
_SHARED = _Start(copied=False)
_WHOLE = _Start(copied=False, shared=False)


class _Trials:
    """The trials of one request, and the verdicts on them."""

    def __init__(
        self,
        request: Request,
        gradients: bool = False,
        against: bool = False,
        nonfinite: bool = False,
        severed: bool = False,
        ignored: bool = False,
    ) -> None:
        self._request = request
        self._cells = cells_of(request.program, request.cell)
        self._deadline = time.monotonic() + request.seconds
        self._trials: dict[int, tuple[Trial, int]] = {}
        self._verdicts: dict[int, Verdict] = {}
        self._gradients = gradients
        self._against = against
        self._nonfinite = nonfinite
        self._severed = severed
        self._ignored = ignored
        #: Those of which only functions that live could be edited, and why nothing else could.
        self.untried: dict[int, Verdict] = {}
        self.interrupted = False
        if gradients or nonfinite or severed or ignored:
            self._trials[ORIGINAL] = Trial(ORIGINAL, ()), len(self._cells) - 1

    def add(self, index: int, proposal: Proposal) -> None:
        if proposal.safety is Safety.SHOW_ONLY or not proposal.edits:
            self._verdicts[index] = _not_tried(index, "show_only")
            return
        first = self._first_edited(proposal)
        if first is None:
            self._verdicts[index] = _not_tried(index, "not_replayable", what="In[?]")
            return
        self._trials[index] = Trial(index, proposal.edits), first

    def run(self) -> dict[int, Verdict]:
        """From the live copy where that can be, then from the start; from the copy once more, with
        functions of it edited, what cannot be run from the start."""
        checkpoint = self._request.checkpoint
        if checkpoint is not None and checkpoint.alive:
            last = len(self._cells) - 1
            self._attempt(_COPIED, [i for i, (_, first) in self._trials.items() if first == last])
        if checkpoint is None or not (checkpoint.alive or checkpoint.alone):
            self._from_start()
        elif not checkpoint.alone:
            self._from_start_or_where_it_lives(checkpoint)
        return self._verdicts

    def _from_start_or_where_it_lives(self, checkpoint: Checkpoint) -> None:
        if checkpoint.stranded is None:
            checkpoint.stranded = self._from_start()
        else:
            self._not_tried(self._open(), checkpoint.stranded)
        untried = [i for i, v in self._verdicts.items() if v.outcome is Outcome.NOT_TRIED]
        self.untried = {i: self._verdicts[i] for i in untried if self._is_redefinition(i)}
        self._attempt(_REDEFINED, list(self.untried))

    def _from_start(self) -> Reason | None:
        """Run what is open from the first cell on; the reason why no cells can be."""
        asked = self._open()
        for start in (_SHARED, _WHOLE):
            self._attempt(start, self._open())
        reasons = [self._verdicts[i].reason for i in asked if i in self._verdicts]
        stranded = bool(reasons) and all(r == reasons[0] for r in reasons)
        return reasons[0] if stranded and reasons[0].key in _STRANDED else None

    def _not_tried(self, indices: Iterable[int], reason: Reason) -> None:
        for index in indices:
            self._verdicts.setdefault(index, Verdict(index, Outcome.NOT_TRIED, reason))

    def _is_redefinition(self, index: int) -> bool:
        """Whether edits of functions are all that a trial asks of what ran before the last cell."""
        edits = self._trials[index][0].edits if index in self._trials else ()
        number = self._request.cell
        return bool(edits and number) and bodies_alone(e for e in edits if e.cell != number)

    def _only_live(self) -> bool:
        return self._request.checkpoint is not None and self._request.checkpoint.alone

    def _note(self, verdict: Verdict) -> None:
        """Another state may show more, never less: what ran from the live copy did run, even if
        the cells before it cannot be replayed."""
        known = self._verdicts.get(verdict.index)
        if known is None or verdict.outcome is not Outcome.NOT_TRIED:
            self._verdicts[verdict.index] = verdict

    def _open(self) -> list[int]:
        known = self._verdicts
        return [i for i in self._trials if i not in known or known[i].retry]

    def _attempt(self, start: _Start, indices: list[int]) -> None:
        if not indices or self.interrupted:
            return
        plan = self._plan(start, indices)
        reason = self._hopeless(plan)
        if reason is None:
            try:
                reason = self._listen(self._begin(plan, start))
            except KeyboardInterrupt:
                self.interrupted = True
                reason = Reason("interrupted")
            except OSError as error:
                reason = Reason("crashed", {"what": str(error)})
        self._not_tried(indices, reason)

    def _plan(self, start: _Start, indices: Iterable[int]) -> Plan:
        request = self._request
        chosen = [self._trials[i] for i in indices]
        first = min(first for _, first in chosen)
        first = len(self._cells) - 1 if start.redefined else first
        return Plan(
            cells=self._cells[first:],
            trials=tuple(trial for trial, _ in chosen if trial.index >= 0),
            reference=request.reference,
            kind=request.kind,
            message=request.message,
            seconds=max(0.1, self._deadline - time.monotonic()),
            megabytes=request.megabytes,
            prefix=() if start.copied else self._cells[:first],
            earlier=self._cells[:first] if start.redefined else None,
            fresh=not start.copied,
            shared=start.shared,
            failed=request.failed - {request.cell},
            gradients=self._gradients,
            against=self._against,
            nonfinite=self._nonfinite,
            severed=self._severed,
            stops=request.stops,
            rounds=request.rounds,
            ignored=self._ignored,
            awaited=request.awaited,
            awaits_steps=request.awaits_steps,
            device=uses_device(),
            unknown=request.unknown,
        )

    def _hopeless(self, plan: Plan) -> Reason | None:
        """A replay that would take longer than the time left is not begun, unless it may end
        before the cell does."""
        known = self._request.durations
        ends_early = (plan.nonfinite or plan.severed or plan.ignored) and not plan.prefix
        cells = () if ends_early else (*plan.prefix, *plan.cells)
        needed = sum(known.get(c.number, 0.0) for c in cells)
        left = self._deadline - time.monotonic()
        if left > 0 and needed <= left and self._cells:
            return None
        return self._over()

    def _over(self) -> Reason:
        return Reason("budget", {"seconds": f"{self._request.seconds:.3g}"})

    def _first_edited(self, proposal: Proposal) -> int | None:
        """The position of the first cell that must run anew: edited files may be used by any."""
        if any(edit.cell is None for edit in proposal.edits):
            return 0 if self._cells else None
        numbers = [cell.number for cell in self._cells]
        if any(edit.cell not in numbers for edit in proposal.edits):
            return None
        return min(numbers.index(edit.cell or 0) for edit in proposal.edits)

    def _begin(self, plan: Plan, start: _Start) -> Child:
        checkpoint = self._request.checkpoint
        if start.copied and checkpoint is not None:
            child = checkpoint.converse(plan)
            if child is None:
                raise OSError("the checkpoint is gone")
            return child
        return _fork_worker(plan) if can_fork() else spawn_child(("plan", plan, sys.path))

    def _listen(self, child: Child) -> Reason:
        """Collect verdicts until the child has no more, the time is over, or Ctrl-C; gives the
        reason for those that did not come."""
        checkpoint = self._request.checkpoint
        owned = checkpoint is None or not checkpoint.owns(child)
        end = self._deadline + _GRACE
        done = False
        try:
            while not done and not child.closed and time.monotonic() < end:
                child.wait(end - time.monotonic())
                for message in child.messages():
                    done = message is None
                    if isinstance(message, Verdict):
                        self._note(message)
                        if self._request.progress is not None:
                            self._request.progress(message)
                    elif isinstance(message, Crash):
                        return Reason("crashed", {"what": message.what})
            if child.closed and not done:
                return Reason("crashed")
            return self._over()
        finally:
            if owned:
                child.end(group=True)
            elif not done and checkpoint is not None:
                checkpoint.discard()


def _fork_worker(plan: Plan) -> Child:
    """A fork of the session that replays from an empty namespace: torch is loaded already."""

    def body(reader: int, writer: int) -> None:
        from .isolate import isolate

        isolate((reader, writer))
        from .coordinator import coordinate

        for verdict in coordinate(plan, None):
            write_message(writer, verdict)
        write_message(writer, None)

    return fork_child(body)


def _stays(proposal: Proposal, verdict: Verdict) -> bool:
    if verdict.outcome is Outcome.DIFFERS:
        return proposal.intended_difference or proposal.corrects
    return verdict.outcome is not Outcome.FAILS


def _rank(proposal: Proposal, verdict: Verdict) -> int:
    """Verified first, but for what corrects the program; what could not be tried last; one that
    makes torch warn after one that does not."""
    if _corrects(proposal, verdict):
        return -1
    return _RANK.get(verdict.outcome, 4) + (1 if verdict.warns else 0)


def _rewrite(proposal: Proposal, verdict: Verdict) -> Rewrite:
    plain = Rewrite(proposal.fix, proposal.edits, proposal.safety, proposal.facts)
    reason = verdict.reason
    if _corrects(proposal, verdict):
        reason = replace(reason, key="differs_for_caller")
    return replace(plain, outcome=verdict.outcome, reason=reason, comparison=verdict.comparison)


def _not_tried(index: int, key: str, **values: str) -> Verdict:
    return Verdict(index, Outcome.NOT_TRIED, Reason(key, values))
