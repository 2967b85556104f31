"""The process that tries the rewrites: original program first, then every proposal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from ..model import Kind, Outcome, Reason
from .cells import edited
from .dependence import (
    follows,
    keeps_gradients,
    keeps_losses,
    missed_before,
    shift_for,
    shift_of_zeros,
    starves,
)
from .differences import agrees, chosen, nudges
from .judge import (
    Basis,
    as_it_ran,
    basis_of,
    blocked,
    blocked_by,
    confirmed,
    differing_slope,
    following_zeros,
    gradients_of,
    informed,
    needs_differences,
    new_zeros,
    verdict_of,
)
from .plan import ORIGINAL, NonFinite, Plan, Reference, Stage, Trial, Verdict
from .pool import ForkPool, Limits, Pool, SpawnPool
from .process import can_fork
from .redefine import redefinitions
from .replay import Job, Mode, ReplaySession, Result
from .rounds import Moved, Round, candidates, is_lacking, moved_away, severed
from .sandbox import ForbiddenEffect, Sandbox
from .snapshot import Snapshot

_MODES = {
    Reference.SAVED_VALUES: (Mode.COPIES, Mode.COPIES),
    Reference.KEPT_CHECKPOINTS: (Mode.COPIES, Mode.COPIES),
    # The second run has torch's own version check: it fails where something was overwritten
    # between two backwards, and then keeping the graph says nothing about what was meant.
    Reference.RETAINED_GRAPH: (Mode.RETAINED_COPIES, Mode.RETAINED),
    Reference.LENIENT: (Mode.LENIENT, Mode.LENIENT),
    Reference.RETAINED_GRADIENTS: (Mode.RETAINED_GRADIENTS, Mode.RETAINED_GRADIENTS),
    Reference.OWN_DERIVATIVES: (Mode.OWN_DERIVATIVES, Mode.OWN_DERIVATIVES),
    Reference.OWN_GRADIENTS: (Mode.OWN_GRADIENTS, Mode.OWN_GRADIENTS),
    Reference.HOOKS_ONCE: (Mode.HOOKS_ONCE, Mode.HOOKS_ONCE),
}
_BYTES_OF_BUDGET = 4  # a snapshot may take this share of the memory


def coordinate(plan: Plan, session: ReplaySession | None) -> Iterator[Verdict]:
    """Try a plan.  `session` is the state to begin with; a fresh one is made without it."""
    # The session forks where its own calls are hidden from function modes: replays are not.
    with torch._C._EnableTorchFunction():
        yield from _coordinate(plan, session)


def _coordinate(plan: Plan, session: ReplaySession | None) -> Iterator[Verdict]:
    limits = Limits(time.monotonic() + plan.seconds, plan.megabytes)
    if session is None and not can_fork():
        yield from _Trials(replace(plan, shared=False), SpawnPool(limits)).run()
        return
    if session is None:
        sandbox = Sandbox(plan.device)
        sandbox.enter()
        session = ReplaySession.fresh(sandbox)
    _preload(plan)
    reason = _run_prefix(plan, session) if plan.fresh and plan.shared else None
    if reason is not None:
        yield from blocked(plan, reason, retry=False)
        return
    yield from _Trials(plan, ForkPool(session, limits)).run()


def _preload(plan: Plan) -> None:
    """The first optimizer of a process loads torch._dynamo (torch 2.13: 0.9 s), in each replay
    anew unless it is there before they fork."""
    if any("optim" in cell.text for cell in (*plan.prefix, *plan.cells)):
        import torch._dynamo  # noqa: F401


def _run_prefix(plan: Plan, session: ReplaySession) -> Reason | None:
    session.sandbox.enter_prefix(plan.megabytes)
    try:
        failure = session.run(plan.prefix, {}, plan.failed)
    except ForbiddenEffect:
        return session.sandbox.reason
    if failure is not None and failure.of_memory:
        return Reason("memory")
    if failure is not None:
        return Reason("not_replayable", {"what": failure.short})
    return session.sandbox.reason


class _Trials:
    def __init__(self, plan: Plan, pool: Pool) -> None:
        self._plan = plan
        self._pool = pool

    def run(self) -> Iterator[Verdict]:
        plan = self._plan
        if plan.against:
            yield from self._against()
            return
        if plan.nonfinite:
            yield self._nonfinite()
            return
        if plan.severed:
            yield self._severed()
            return
        if plan.ignored:
            yield self._ignored()
            return
        results = dict(self._pool.run({"plain": self._job(Mode.PLAIN)})) if plan.unknown else {}
        if plan.unknown:
            plan = self._plan = informed(plan, results["plain"])
        results |= self._first()
        reason = blocked_by(plan, results["plain"])
        if reason is not None and results["plain"].hid:
            # What the session has made once it may not be able to make again: a download.
            self._plan = plan = replace(plan, hiding=False)
            results = self._first()
            reason = blocked_by(plan, results["plain"])
        if reason is not None:
            retry = not plan.fresh and reason.key in ("cuda", "not_replayable")
            yield from blocked(plan, reason, retry)
            return
        plain = results["plain"]
        self._plan = plan = replace(plan, was_nonfinite=plain.nonfinite, was_zero=plain.zero)
        results |= dict(self._pool.run(self._tracked_job(results.get("reference"))))
        for verdict in self._last(results):
            yield as_it_ran(verdict) if plan.unknown else verdict

    def _first(self) -> dict[str, Result]:
        """What the first jobs show, as far as they are of use: trials say nothing where the
        original does not go wrong again as it did."""
        results: dict[str, Result] = {}
        for key, result in self._pool.run(self._first_jobs()):
            results[key] = result
            if key == "plain" and blocked_by(self._plan, result) is not None:
                break
        return results

    def _last(self, first: Mapping[str, Result]) -> Iterator[Verdict]:
        """The second run of the reference with all the trials; then those that agree again."""
        reference, tracked = first.get("reference"), first.get("tracked")
        references = tuple(r.snapshot for r in (reference, tracked) if r is not None and r.snapshot)
        jobs: dict[str, Job] = {}
        if references and reference is not None and reference.completed:
            mode = _MODES[self._plan.reference][1]
            jobs["second"] = self._job(mode, against=references[:1])
        if self._plan.gradients and references:
            jobs[str(ORIGINAL)] = self._job(Mode.PLAIN, against=references)
        jobs |= self._trial_jobs(references)
        results = {key: first[key] for key in jobs if key in first}
        results |= dict(self._pool.run({k: job for k, job in jobs.items() if k not in results}))
        basis = basis_of(self._plan, reference, results.pop("second", None), tracked)
        basis = replace(basis, backwards=first["plain"].backwards)
        verdicts = [verdict_of(self._plan, int(k), basis, r) for k, r in results.items()]
        verdicts = self._without_zeros(verdicts, results)
        for verdict in verdicts:
            if verdict.index == ORIGINAL:
                found = gradients_of(basis, results[str(ORIGINAL)])
                yield replace(verdict, gradients=found)
            elif verdict.outcome is not Outcome.VERIFIED:
                yield verdict
        agreeing = {v.index: v for v in verdicts if v.outcome is Outcome.VERIFIED}
        yield from self._confirmed(basis, agreeing, references)

    def _without_zeros(
        self, verdicts: list[Verdict], results: Mapping[str, Result]
    ) -> list[Verdict]:
        """Zeros are no gradient where the loss follows what gets them, and does so by no chance: a
        second run of the same has the loss of the first."""
        zeros = {v.index: new_zeros(self._plan, v, results[str(v.index)]) for v in verdicts}
        trials = [t for t in self._plan.trials if zeros.get(t.index)]
        if not trials:
            return verdicts
        jobs = {str(t.index): self._job(Mode.DEPENDENCE, trial=t) for t in trials}
        before = {key: result.reaches for key, result in self._pool.run(jobs)}
        shifts = {key: s for key, found in before.items() if (s := shift_of_zeros(found))}
        moves = {key: replace(jobs[key], shift=shift) for key, shift in shifts.items()}
        moved = {key: result.reaches for key, result in self._pool.run(moves)}
        again = {key: r.reaches for key, r in self._pool.run({key: jobs[key] for key in shifts})}
        wrong = {
            int(key)
            for key, shift in shifts.items()
            if follows(shift, before[key], moved[key]) and again[key][shift.backward :]
            if keeps_losses(before[key], again[key])
        }
        return [following_zeros(v, zeros[v.index]) if v.index in wrong else v for v in verdicts]

    def _confirmed(
        self, basis: Basis, verdicts: Mapping[int, Verdict], references: tuple[Snapshot, ...]
    ) -> Iterator[Verdict]:
        """A rewrite may agree although it damages what it saved (`y.data.mul_(2)` after an exp
        gives the doubled gradient by accident): with copies it must agree as well."""
        jobs = {
            str(trial.index): self._job(Mode.COPIES, trial=trial, against=references)
            for trial in self._plan.trials
            if trial.index in verdicts
        }
        doubted = []
        for key, result in self._pool.run(jobs):
            verdict = confirmed(self._plan, basis, verdicts[int(key)], result)
            if verdict.outcome is Outcome.VERIFIED and needs_differences(basis, result):
                doubted.append(verdict)
            else:
                yield verdict
        for verdict in doubted:
            yield verdict if self._slopes_agree(verdict) else differing_slope(verdict)

    def _slopes_agree(self, verdict: Verdict) -> bool:
        """Whether the losses of a rewrite rise as its gradients say."""
        trial = next(t for t in self._plan.trials if t.index == verdict.index)
        ((_, plain),) = self._pool.run({"": self._job(Mode.SLOPES, trial=trial)})
        numbers = chosen(plain.slopes) if plain.completed else ()
        for number in numbers:
            slope = plain.slopes[number]
            jobs = {
                str(place): replace(self._job(Mode.SLOPES, trial=trial), nudge=nudge)
                for place, nudge in enumerate(nudges(number, slope))
            }
            results = dict(self._pool.run(jobs))
            moved = [results[key].slopes for key in jobs]
            if not all(len(s) == len(plain.slopes) for s in moved):
                return False
            if not agrees(slope, [s[number].loss for s in moved]):
                return False
        return bool(numbers)

    def _against(self) -> Iterator[Verdict]:
        """What speaks against each trial."""
        jobs = {str(t.index): self._job(Mode.DEPENDENCE, trial=t) for t in self._plan.trials}
        original = {str(ORIGINAL): self._job(Mode.DEPENDENCE)}
        plain = dict(self._pool.run(original | jobs))
        most = max(len(result.reaches) for result in plain.values())
        ran = plain.pop(str(ORIGINAL)).reaches
        before = ran if self._plan.kind is Kind.ERROR else ()  # of a warning all completed
        # Where an optimizer is at fault, what backwards do not reach was so before.
        meant = missed_before(ran if self._plan.awaits_steps else before)
        shifts = {key: shift_for(r.reaches, meant) for key, r in plain.items() if r.completed}
        again = {key: replace(jobs[key], shift=shift) for key, shift in shifts.items() if shift}
        moved = dict(self._pool.run(again))
        for key, shift in shifts.items():
            reaches = plain[key].reaches
            against = 0 if shift is None and keeps_gradients(before, reaches) else 1
            if shift is not None and follows(shift, reaches, moved[key].reaches):
                against = 2
            if len(reaches) < most or not keeps_losses(before, reaches):
                against = 2
            if starves(before, reaches):
                against = 3
            yield Verdict(int(key), Outcome.RUNS, Reason(), against=against)

    def _nonfinite(self) -> Verdict:
        """Where the numbers of the original stop being finite."""
        ((_, result),) = self._pool.run({"": self._job(Mode.NONFINITE)})
        found = result.origin
        if found is not None and (found.stage is Stage.VALUE or found.given):
            ((_, again),) = self._pool.run({"": self._job(Mode.NONFINITE_VALUES)})
            found = again.origin or found
        if found is None and result.completed:
            found = NonFinite(Stage.NOTHING)
        outcome = Outcome.NOT_TRIED if found is None else Outcome.RUNS
        return Verdict(ORIGINAL, outcome, Reason(), nonfinite=found)

    def _ignored(self) -> Verdict:
        """Which gradients of the original do not depend on what comes in."""
        ((_, result),) = self._pool.run({"": self._job(Mode.IGNORED)})
        return Verdict(ORIGINAL, _outcome_of(result), Reason(), ignored=result.ignored)

    def _severed(self) -> Verdict:
        """Which values the original's losses depend on and its gradients know nothing of."""
        job = self._job(Mode.SEVERED)
        results = dict(self._pool.run({"first": job, "second": job}))
        before = results["first"].rounds
        moves = candidates(before, results["second"].rounds)
        after = self._moved(job, moves)
        found = {m: value for m in moves if (value := severed(m, before, after[m])) is not None}
        away = {m: moved_away(m, before, after[m]) for m in found}
        after = self._moved(job, [far for moves in away.values() for far in moves])
        told = tuple(
            value
            for m, value in found.items()
            if all(is_lacking(far, before, after[far]) for far in away[m])
        )
        told = (*told, *results["first"].cancelled)
        return Verdict(ORIGINAL, _outcome_of(results["first"]), Reason(), severed=told)

    def _moved(self, job: Job, moves: Sequence[Moved]) -> Mapping[Moved, tuple[Round, ...]]:
        """The rounds of a run for each of the moves."""
        jobs = {str(number): replace(job, moved=moved) for number, moved in enumerate(moves)}
        return {moves[int(key)]: result.rounds for key, result in self._pool.run(jobs)}

    def _first_jobs(self) -> Mapping[str, Job]:
        jobs = {"plain": self._job(Mode.PLAIN)}
        if self._plan.reference is Reference.NONE:  # the trials have nothing to wait for
            return jobs | self._trial_jobs(())
        jobs["reference"] = self._job(_MODES[self._plan.reference][0], keep=True)
        return jobs

    def _trial_jobs(self, references: tuple[Snapshot, ...]) -> dict[str, Job]:
        trials = self._plan.trials
        return {str(t.index): self._job(Mode.PLAIN, trial=t, against=references) for t in trials}

    def _tracked_job(self, reference: Result | None) -> Mapping[str, Job]:
        saved_values = self._plan.reference is Reference.SAVED_VALUES
        if not saved_values or reference is None or not reference.untracked:
            return {}
        if reference.snapshot is None:
            return {}
        return {"tracked": self._job(Mode.TRACKED, against=(reference.snapshot,), keep=True)}

    def _job(
        self,
        mode: Mode,
        trial: Trial | None = None,
        against: tuple[Snapshot, ...] = (),
        keep: bool = False,
    ) -> Job:
        plan = self._plan
        edits = () if trial is None else trial.edits
        lives = plan.earlier is not None
        return Job(
            cells=edited(plan.cells, edits),
            mode=mode,
            prefix=() if plan.shared else edited(plan.prefix, edits),
            files={} if lives else {e.file: e.new_source for e in edits if e.file is not None},
            redefined=redefinitions(edits, plan.cells, plan.earlier or ()) if lives else (),
            failed=plan.failed,
            kind=plan.kind,
            message=plan.message,
            against=against,
            keep=keep,
            limit=(plan.megabytes << 20) // _BYTES_OF_BUDGET,
            megabytes=plan.megabytes,
            awaited=plan.awaited,
            awaits_steps=plan.awaits_steps,
            stops=plan.stops,
            rounds=plan.rounds,
            device=plan.device,
            hiding=plan.hiding,
        )


def _outcome_of(result: Result) -> Outcome:
    """Of a run that is asked what it shows: one that was stopped has shown nothing."""
    return Outcome.NOT_TRIED if result.stopped else Outcome.RUNS
