"""Step after the last backward that needs the old parameters, or compute the loss later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from autograd_explain.model import Finding, Place, Role, Safety
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Proposal, differing, same
from autograd_explain.rewrite.engine.edits import then
from autograd_explain.rewrite.transforms.detach import detach_after, detached_at
from autograd_explain.rewrite.transforms.move_statement import move_after, toggled_run
from autograd_explain.rewrite.transforms.recompute import moment_of, recompute_behind

from .diagnose import Details
from .loops import item_first, step_in_own_loop
from .recompute_in_loop import anew_for_next_round, in_every_round


def propose(finding: Finding[Details | None], program: Program) -> Iterator[Proposal]:
    details = finding.details
    if details is None:
        return
    step, failed, forward = details.step, details.failed, details.forward
    steps = sorted((step, *details.further), key=partial(moment_of, program))
    moved = None if details.cleared else _in_turn(program, steps, failed, _move_step)
    among = any(p.line_id == steps[-1].line_id for p in forward)
    again = None if among else _in_turn(program, forward, steps[-1], _behind)
    again = again or recompute_behind(program, forward, steps, failed)
    # A loss that went backward before the step is kept as a number.
    yield from differing("detach_kept", detached_at(program, details.spent))
    given = None if details.carried is None else details.carried.given
    yield from differing("each_round", anew_for_next_round(program, given))
    if moment_of(program, failed) < moment_of(program, step):
        rounds = in_every_round(program, details.whole, failed)
        yield from differing("each_round", rounds)
        if rounds:  # what is computed later in the round only would still hold the old part
            again = None
    if step.line_id == failed.line_id:
        # One loop steps for one item and fails for a later one.
        root = finding.tensor(Role.ROOT)
        for name in () if root is None else root.names:
            yield from same("update_first", item_first(program, step, name))
    # A step that waits may use the gradients of both backwards: other values on purpose.  Where
    # the failing backward adds to the gradients that the step uses, waiting for it would change
    # the step itself.
    safety = Safety.CHANGES_MEANING if details.shares_gradients else Safety.SAME_GRADIENTS
    later = [Proposal("move_step", moved, safety, intended_difference=True)] if moved else []
    either = [*later, *differing("recompute", again)]
    yield from reversed(either) if details.shares_gradients else either
    if (state := details.carried) is not None:  # without the graph of the rounds before the step
        edits = detach_after(program, state.place, *state.names, kind=state.kind.value)
        yield from differing("detach_state", edits)


def _in_turn(
    program: Program, places: Sequence[Place], goal: Place, move: Callable[..., Edits | None]
) -> Edits | None:
    """The places behind the goal, in order: the last goes first, as it reads what others make."""
    edits: Edits | None = ()
    for place in reversed(places):
        edits = then(program, edits, move, place, goal)
    return edits or None


def _move_step(program: Program, step: Place, failed: Place) -> Edits | None:
    # Where the step stands later, one round steps and a later one fails.
    later = moment_of(program, failed) < moment_of(program, step)
    return (step_in_own_loop if later else move_after)(program, step, failed)


def _behind(program: Program, place: Place, step: Place) -> Edits | None:
    """A statement that computes the loss, with what is switched around it."""
    first, last = toggled_run(program, place) or (place, place)
    return move_after(program, first, step, last)
