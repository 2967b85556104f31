"""From results to outcomes.  `verified` is said only where nothing is left to doubt."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ..model import Comparison, Kind, Outcome, Reason
from .cells import Failure
from .compare import Agreement
from .plan import ORIGINAL, GradientDifference, Plan, Reference, Verdict, reference_for
from .reference import STALE
from .replay import NON_LEAF_WARNING, Result

_OVERWRITTEN = "modified by an inplace operation"
#: Doubts that another state can clear: graphs made before the state in which replays begin.
_EARLIER = {"older_graph", "overwritten_earlier"}
_NAMES_SHOWN = 4


@dataclass(frozen=True)
class Basis:
    """What the runs of the original program allow to say about rewrites.

    `blocked` is why nothing can be tried, `why` why running is all that can be shown ("" where a
    reference is sound); `unstable` are values that differ between two equal runs.  `tracked`
    says that the second reference, which sees every write, decides.  `unfollowed` says that
    neither saw all writes: what agrees is to agree with finite differences too.  `backwards` is how
    many came to their end in the original program.
    """

    reference: Result | None = None
    blocked: Reason | None = None
    why: str = ""
    error: str = ""
    unstable: frozenset[str] = frozenset()
    tracked: bool = False
    unfollowed: bool = False
    retry: bool = False
    backwards: int = 0


def informed(plan: Plan, plain: Result) -> Plan:
    """A plan for an original of which it was not known what it does, with what its run did; it
    stays `unknown` whether its gradients are right where it did not fail."""
    failure = plain.failure
    kind, message = (Kind.SILENT, "") if failure is None else (Kind.ERROR, failure.text)
    reference = reference_for(kind, message, overwritten=True)
    return replace(plan, kind=kind, message=message, reference=reference, unknown=failure is None)


def as_it_ran(verdict: Verdict) -> Verdict:
    """A verdict whose reference is a program of which nothing says that its gradients are right."""
    if verdict.outcome not in (Outcome.VERIFIED, Outcome.DIFFERS):
        return verdict
    reason = replace(verdict.reason, values={**verdict.reason.values, "why": "as_it_ran"})
    same = verdict.outcome is Outcome.VERIFIED
    return replace(verdict, outcome=Outcome.RUNS if same else verdict.outcome, reason=reason)


def blocked_by(plan: Plan, plain: Result) -> Reason | None:
    """Why the replay cannot speak for the session: the original must go wrong in the same way."""
    stopped = _stopped(plan, plain)
    if stopped is not None:
        return stopped
    if plan.kind is Kind.ERROR:
        same = plain.failure is not None and same_message(plan.message, plain.failure)
    elif plan.kind is Kind.WARNING:
        same = plain.failure is None and (plain.warned or not plan.message)
    else:
        same = plain.failure is None
    if same:
        return None
    found = "no error" if plain.failure is None else plain.failure.short
    return Reason("not_replayable", {"what": found})


def same_message(message: str, failure: Failure) -> bool:
    """The same text; places in memory and stacks behind it may differ."""
    first = " ".join(message.split())[:200]
    second = " ".join(failure.text.split())[:200]
    return not first or first == second or f"{failure.type}: {second}"[:200] == first


def basis_of(
    plan: Plan, first: Result | None, second: Result | None, tracked: Result | None
) -> Basis:
    """Judge the reference: it must exist, be sound, and come out the same again."""
    if plan.reference is Reference.NONE or first is None:
        return Basis(why="no_reference")
    if first.doubts & _EARLIER:
        return Basis(first, why=sorted(first.doubts & _EARLIER)[-1], retry=True)
    if not first.completed or first.snapshot is None:
        error = first.failure.short if first.failure else first.stopped
        return Basis(why="reference_failed", error=error)
    if plan.reference is Reference.RETAINED_GRADIENTS and first.non_leaf:
        # The backward was over before this run: nothing has kept the gradient that was asked for.
        return Basis(first, why="older_graph", retry=True)
    if doubts := sorted(first.doubts - {STALE}):
        return Basis(first, why=doubts[0])
    if not first.snapshot.complete:
        return Basis(first, why="too_large")
    if second is None or second.stopped:
        return Basis(first, why="nondeterministic")
    return _repeated(plan, first, second, tracked)


def _repeated(plan: Plan, first: Result, second: Result, tracked: Result | None) -> Basis:
    if second.failure is not None:
        between = _OVERWRITTEN in second.failure.text
        return Basis(first, why="overwritten_between" if between else "nondeterministic")
    again = second.agreements[0]
    if _disagrees(again) or again.missing:
        kept = plan.reference is Reference.RETAINED_GRAPH
        return Basis(first, why="overwritten_between" if kept else "nondeterministic")
    unstable = frozenset((*again.differing_values, *again.inexact))
    if not first.untracked and not first.unclear:
        return Basis(first, unstable=unstable)
    if not first.untracked:
        return Basis(first, unstable=unstable, unfollowed=True)
    if tracked is None or not tracked.completed:
        return Basis(first, why="ambiguous", unstable=unstable)
    decides, unfollowed = _disagrees(tracked.agreements[0]), first.unclear or tracked.unclear
    return Basis(first, unstable=unstable, tracked=decides, unfollowed=unfollowed)


def _disagrees(agreement: Agreement) -> bool:
    return bool(agreement.differing or agreement.leftovers)


def verdict_of(plan: Plan, index: int, basis: Basis, result: Result) -> Verdict:
    """What trying a rewrite showed."""
    stopped = _stopped(plan, result)
    if stopped is not None:
        return Verdict(index, Outcome.NOT_TRIED, stopped)
    if result.failure is not None:
        further = result.backwards - basis.backwards
        return Verdict(index, Outcome.FAILS, _failed(result.failure, further))
    if result.unreached:
        names = _joined(result.unreached)
        key = "still_unstepped" if result.by_steps else "still_unreached"
        return Verdict(index, Outcome.FAILS, Reason(key, {"names": names}))
    if result.nonfinite:
        names = _joined(result.nonfinite)
        return Verdict(index, Outcome.FAILS, Reason("still_nonfinite", {"names": names}))
    still = [name for name in result.zero if name in plan.was_zero]
    if still:
        return Verdict(index, Outcome.FAILS, Reason("still_zero", {"names": _joined(still)}))
    if plan.kind is Kind.WARNING and result.warned:
        return Verdict(index, Outcome.FAILS, _warned(plan.message))
    reference = basis.reference
    if result.non_leaf and reference is not None and not reference.non_leaf:
        return Verdict(index, Outcome.FAILS, _warned(NON_LEAF_WARNING))
    if not result.agreements:
        return _runs(index, basis, None, result, plan)
    return _compared(index, basis, result)


def new_zeros(plan: Plan, verdict: Verdict, result: Result) -> tuple[str, ...]:
    """What a rewrite that runs gives zeros, where there was no gradient: for one that was not
    finite, zeros are."""
    if verdict.outcome is not Outcome.RUNS:
        return ()
    before = {*plan.was_zero, *plan.was_nonfinite}
    return tuple(name for name in result.zero if name not in before)


def following_zeros(verdict: Verdict, names: Sequence[str]) -> Verdict:
    """A rewrite that gives zeros to what the loss follows."""
    reason = Reason("only_zeros", {"names": _joined(names)})
    return replace(verdict, outcome=Outcome.FAILS, reason=reason)


def _compared(index: int, basis: Basis, result: Result) -> Verdict:
    agreement = result.agreements[-1 if basis.tracked else 0]
    comparison = comparison_of(agreement, basis.unstable)
    if basis.why:  # a reference that cannot be trusted neither confirms nor refutes
        return _runs(index, basis, None, result)
    if agreement.leftovers and not agreement.differing and not agreement.missing:
        return _runs(index, replace(basis, why="leftovers"), comparison, result)
    if comparison.differing:
        either = any(not comparison_of(a, basis.unstable).differing for a in result.agreements)
        if basis.unfollowed or (basis.tracked and either):
            return _runs(index, replace(basis, why="ambiguous"), None, result)
        names = _joined(comparison.differing)
        return Verdict(index, Outcome.DIFFERS, Reason("differs", {"names": names}), comparison)
    why = _nothing_shown(agreement)
    if why:
        return _runs(index, replace(basis, why=why), comparison, result)
    if basis.reference is not None and STALE in basis.reference.doubts:
        # To keep what an update has made old agrees with the program as written, not as meant.
        return _runs(index, replace(basis, why="ambiguous"), comparison, result)
    values = {"names": _joined(comparison.compared), "values": str(agreement.values)}
    if comparison.worst > 0:
        values["worst"] = f"{comparison.worst:.1e}"
    if agreement.written:
        values["kept"] = _joined(agreement.written)
    return Verdict(index, Outcome.VERIFIED, Reason("agrees", values), comparison)


def confirmed(plan: Plan, basis: Basis, verdict: Verdict, again: Result) -> Verdict:
    """A verdict of agreement after the rewrite has run once more, with copies of what it saved."""
    if not again.completed or again.doubts or not again.agreements:
        return _runs(verdict.index, replace(basis, why="unconfirmed"), None, again)
    comparison = comparison_of(again.agreements[-1 if basis.tracked else 0], basis.unstable)
    if comparison.differing:
        names = _joined(comparison.differing)
        reason = Reason("differs", {"names": names})
        return Verdict(verdict.index, Outcome.DIFFERS, reason, comparison)
    return verdict


def needs_differences(basis: Basis, again: Result) -> bool:
    """Whether a rewrite that agrees with the reference may lack a derivative that both lack:
    memory of the graph was written in a way that neither run could follow."""
    original = basis.reference
    new = again.untracked and original is not None and not original.untracked
    return basis.unfollowed or again.unclear or new


def differing_slope(verdict: Verdict) -> Verdict:
    """A rewrite whose gradients agree with the reference, but not with finite differences."""
    values = {"why": "finite_differences"}
    return replace(verdict, outcome=Outcome.RUNS, reason=Reason("no_reference", values))


def _nothing_shown(agreement: Agreement) -> str:
    """Why agreement is no proof, "" where it is one."""
    if agreement.missing:
        return "gradient_missing"
    if not agreement.gradients:
        return "no_gradient"
    if agreement.zeros == len(agreement.gradients):
        return "zero_gradients"
    return ""


def comparison_of(agreement: Agreement, unstable: Collection[str] = ()) -> Comparison:
    values = (v for v in agreement.differing_values if v not in unstable)
    differing = tuple(dict.fromkeys((*agreement.differing, *agreement.leftovers, *values)))
    return Comparison(tuple(agreement.gradients), agreement.worst, differing)


def gradients_of(basis: Basis, result: Result) -> tuple[GradientDifference, ...]:
    """Which gradients of a run differ from the reference; () where that is not sound."""
    if basis.why or basis.unfollowed or not result.agreements:
        return ()
    shown = result.agreements[-1 if basis.tracked else 0].shown
    found = (GradientDifference(name, *values) for name, values in shown.items())
    return tuple(sorted(found, key=lambda d: d.name))


def blocked(plan: Plan, reason: Reason, retry: bool) -> list[Verdict]:
    """Nothing could be tried."""
    indices = [t.index for t in plan.trials] + ([ORIGINAL] if plan.gradients else [])
    return [Verdict(i, Outcome.NOT_TRIED, reason, retry=retry) for i in indices]


def _stopped(plan: Plan, result: Result) -> Reason | None:
    if result.refused is not None:
        return result.refused
    if result.failure is not None and result.failure.of_sandbox:
        return Reason("not_replayable", {"what": result.failure.short})
    if result.stopped == "budget":
        # Of what was left for it nothing is to be told where others took it all.
        return Reason("budget", {"seconds": f"{plan.seconds:.3g}"} if plan.seconds > 0.1 else {})
    return Reason(result.stopped) if result.stopped else None


def _runs(
    index: int,
    basis: Basis,
    comparison: Comparison | None,
    result: Result,
    plan: Plan | None = None,
) -> Verdict:
    mended = frozenset[str]() if plan is None else frozenset(plan.was_nonfinite)
    reached = [n for n in result.reached if n not in result.zero or n in mended]
    why = basis.why if reached or not result.reached else "zero_gradients"
    values = {"why": why, **({"error": basis.error} if basis.error else {})}
    reason = Reason("no_reference", values)
    if reached:
        key = "stepped" if result.by_steps else "reached"
        reason = Reason(key, {"names": _joined(reached)})
        wrong = {} if plan is None else {"finite": plan.was_nonfinite, "nonzero": plan.was_zero}
        for key, before in wrong.items():
            if names := tuple(name for name in reached if name in before):
                reason = Reason(key, {"names": _joined(names)})
    return Verdict(
        index,
        Outcome.RUNS,
        reason,
        comparison,
        basis.retry,
        warns=result.non_leaf,
    )


def _failed(failure: Failure, further: int) -> Reason:
    values = {"error": failure.short, "text": failure.text, "further": str(further)}
    if failure.cell:
        values["cell"] = str(failure.cell)
    if failure.line is not None:
        values["line"] = str(failure.line)
    return Reason("fails_with", values)


def _warned(message: str) -> Reason:
    line = message.strip().splitlines()[0] if message.strip() else "warning"
    return Reason("fails_with", {"error": line if len(line) <= 120 else line[:119] + "…"})


def _joined(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown}, … ({len(names)})"
