"""Leave the saved value alone: write elsewhere, or let the operation save a copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograd_explain.inspect.rebinding import rebinding_is_enough
from autograd_explain.inspect.statements import Form, write_at
from autograd_explain.model import Edit, Finding, Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite import (
    clone_alias,
    clone_operand,
    clone_result,
    functional_write,
    module_not_inplace,
    move_after,
    out_of_place,
)
from autograd_explain.rewrite.clone import view_of_read_later
from autograd_explain.rewrite.hook_output import returned_from_hook
from autograd_explain.rewrite.proposal import Proposal

Edits = tuple[Edit, ...] | None


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    seen = set()
    for fix, edits in _candidates(finding, program):
        if edits and edits not in seen:
            seen.add(edits)
            # An update that waits uses the gradients of both backwards.
            yield Proposal(fix, edits, intended_difference=fix == "move_write")


def _candidates(finding: Finding, program: Program) -> Iterator[tuple[str, Edits]]:
    write = _place(finding, What.CHANGED)
    alias = _place(finding, What.CREATED) if finding.variant == "alias" else None
    if alias is not None:
        if write is not None and view_of_read_later(program, alias, write):
            yield from _at_the_saver(finding, program)
        yield "clone_alias", clone_alias(program, alias)
    if write is not None and finding.facts["parameter"] == "yes":
        yield from _parameter_update(finding, program)
    elif write is not None:
        yield from _at_the_write(finding, program, write)
    yield from _at_the_saver(finding, program)


def _at_the_write(finding: Finding, program: Program, place: Place) -> Iterator[tuple[str, Edits]]:
    """The write makes a new tensor, where no other name has to see the change."""
    write = write_at(program, place)
    if write is None:
        yield "not_inplace", module_not_inplace(program, place)
    elif finding.variant == "alias":
        return
    elif edits := _in_hook(program, place, write.target):
        yield "return_from_hook", edits
    elif write.form is Form.ITEM:
        # Others may look at the buffer that is filled item by item: the saver's copy is safer,
        # unless several statements saved parts of it.
        if finding.facts["savers"] != "1":
            yield "functional_write", functional_write(program, place)
        yield from _at_the_saver(finding, program)
        yield "functional_write", functional_write(program, place)
    elif write.form is Form.CALL:
        yield "not_inplace", module_not_inplace(program, place)
        yield "out_of_place", out_of_place(program, place)
    elif rebinding_is_enough(program, place, write.target):
        yield "out_of_place", out_of_place(program, place)
    else:
        yield from _at_the_saver(finding, program)
        yield "out_of_place", out_of_place(program, place)


def _in_hook(program: Program, place: Place, target: ast.expr) -> Edits:
    return returned_from_hook(program, place, target.id) if isinstance(target, ast.Name) else None


def _parameter_update(finding: Finding, program: Program) -> Iterator[tuple[str, Edits]]:
    """A parameter stays the tensor that modules and optimizers hold: the write waits."""
    for write in finding.places.get("write", ()):
        for failed in finding.places.get("failed", ()):
            yield "move_write", move_after(program, write, failed)


def _at_the_saver(finding: Finding, program: Program) -> Iterator[tuple[str, Edits]]:
    """The operation saves a copy, or the program goes on with one."""
    saver, write = _place(finding, What.SAVED), _place(finding, What.CHANGED)
    if saver is None or saver == write or _within(finding, saver):
        return  # one call saves and overwrites: a copy of what it returns comes too late
    if finding.facts["slot"] == "result":
        yield "clone_result", clone_result(program, saver)
    elif finding.facts["operand"]:
        yield "clone_operand", clone_operand(program, saver, finding.facts["operand"])


def _within(finding: Finding, saver: Place) -> bool:
    """Whether the write happened while the saving line ran (a hook of the module it calls)."""
    write = finding.event(What.CHANGED)
    outer = () if write is None else write.chain
    return any((p.cell, p.file, p.line) == (saver.cell, saver.file, saver.line) for p in outer)


def _place(finding: Finding, what: What) -> Place | None:
    event = finding.event(what)
    return None if event is None else event.place
