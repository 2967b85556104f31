"""Step after the last backward that needs the old parameters, or compute the loss later."""

from __future__ import annotations

from collections.abc import Iterator

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
    moved = _move_step(program, step, failed)
    again = _move_forward(program, forward, step)
    again = again or recompute_behind(program, forward, step, failed)
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


def _move_step(program: Program, step: Place, failed: Place) -> Edits | None:
    if step.line_id == failed.line_id:
        return None
    if moment_of(program, failed) < moment_of(program, step):  # one round steps, a later one fails
        return step_in_own_loop(program, step, failed)
    return move_after(program, step, failed)


def _move_forward(program: Program, forward: tuple[Place, ...], step: Place) -> Edits | None:
    """The statements that compute the loss go behind the step, with what is switched around them.

    The last one goes first: then nothing in between reads what the one before it makes.
    """
    if not forward or any(p.line_id == step.line_id for p in forward):
        return None
    *earlier, last = forward
    edits = _behind(program, last, step)
    for place in reversed(earlier):
        edits = then(program, edits, _behind, place, step)
    return edits


def _behind(program: Program, place: Place, step: Place) -> Edits | None:
    first, last = toggled_run(program, place) or (place, place)
    return move_after(program, first, step, last)
