"""Leave the saved value alone: write elsewhere, or let the operation save a copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from autograd_explain.inspect.facts.rebinding import (
    changes_argument,
    hands_back_argument,
    rebinding_is_enough,
)
from autograd_explain.inspect.facts.statements import Form, SourceWrite, write_at
from autograd_explain.model import Finding, Place, Role, What
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Proposal, differing
from autograd_explain.rewrite.engine.edits import then
from autograd_explain.rewrite.transforms.call_edits import called_sooner
from autograd_explain.rewrite.transforms.clone import (
    clone_alias,
    clone_before_write,
    clone_operand,
    clone_result,
    functional_write,
    view_of_read_later,
)
from autograd_explain.rewrite.transforms.indexed_loop import element_replaced
from autograd_explain.rewrite.transforms.inplace_modules import module_not_inplace
from autograd_explain.rewrite.transforms.move_statement import move_after
from autograd_explain.rewrite.transforms.out_of_place import new_tensor, out_of_place
from autograd_explain.rewrite.transforms.recompute import moment_of, recompute_behind

from .clone_for_call import clone_for_call
from .diagnose import Details
from .hook_output import returned_from_hook
from .tuple_element import tuple_rebuilt

#: Edits with the sections of the texts that tell them; None where one cannot be made.
Fixes: TypeAlias = Iterator[tuple[str, Edits | None]]


def propose(finding: Finding[Details], program: Program) -> Iterator[Proposal]:
    seen: set[Edits] = set()
    for fix, edits in _with_further_writes(finding, program):
        if edits and edits not in seen:
            seen.add(edits)
            # An update that waits uses the gradients of both backwards; what is computed again
            # knows the new values.
            move = fix in ("move_write", "recompute")
            corrects = _corrects(fix, finding, program)
            yield Proposal(fix, edits, intended_difference=move, corrects=corrects)
    if not seen and finding.details.parameter:
        yield from differing("write_first", _before_the_saver(finding, program))


def _corrects(fix: str, finding: Finding[Details], program: Program) -> bool:
    """Whether the program as it is may not be meant, and this takes the write out of it."""
    if fix == "clone_argument":
        return _gives_back(finding, program)
    return not fix.startswith("clone") and _leaks_to_caller(finding, program)


def _gives_back(finding: Finding[Details], program: Program) -> bool:
    """Whether a library writes to what it is given and the program goes on with what it returns."""
    changed = finding.event(What.CHANGED)
    statement = program.statement_at(None if changed is None else changed.place)
    used = isinstance(statement, (ast.Assign, ast.Return))
    return used and changed is not None and changed.inside is not None


def _leaks_to_caller(finding: Finding[Details], program: Program) -> bool:
    """Whether a function that gives its result back writes to its argument on the way."""
    write = finding.place(What.CHANGED)
    return write is not None and hands_back_argument(program, write, finding.details.target)


def _with_further_writes(finding: Finding[Details], program: Program) -> Fixes:
    """Each candidate with the other overwritten tensors spared as well, where that can be done; a
    copy may do alone."""
    for fix, edits in _candidates(finding, program):
        whole = edits
        for write in finding.details.further:
            anew = partial(_anew, finding.details.tuples)
            whole = then(program, whole, anew, replace(write, span=None))
        yield fix, whole
        if whole is None or fix.startswith("clone"):
            yield fix, edits


def _anew(tuples: Mapping[str, int], program: Program, place: Place) -> Edits | None:
    return tuple_rebuilt(program, place, tuples) if tuples else new_tensor(program, place)


def _candidates(finding: Finding[Details], program: Program) -> Fixes:
    write = finding.place(What.CHANGED)
    alias = finding.place(What.CREATED) if finding.details.aliased else None
    if alias is not None:
        one = finding.details.savers == 1
        if one and write is not None and view_of_read_later(program, alias, write):
            yield from _at_the_saver(finding, program)
        yield "clone_alias", clone_alias(program, alias)
    ways: list[tuple[str, Edits | None]] = []
    alone = finding.details.alone
    only = write_at(program, alone)
    if alone is not None and only is not None and rebinding_is_enough(program, alone, only.target):
        yield "out_of_place", out_of_place(program, alone)
    if write is not None and finding.details.parameter:
        # A parameter stays the tensor that modules and optimizers hold: the write waits, unless
        # the program goes on computing with what it wrote.
        late = finding.details.write, finding.details.failed
        yield "recompute", _computed_again(finding, program)
        yield "move_write", move_after(program, *late, unseen=True)
    elif write is not None:
        ways = list(_at_the_write(finding, program, write))
    yield from ways
    # One of several savers with a copy: the next one would fail.
    if finding.details.savers == 1 or not any(edits for _, edits in ways):
        yield from _at_the_saver(finding, program)


def _at_the_write(finding: Finding[Details], program: Program, place: Place) -> Fixes:
    """The write makes a new tensor, where no other name has to see the change."""
    changed = finding.event(What.CHANGED)
    if changed is not None and changed.inside is not None:
        # A library writes to what it is given: its file is not ours to edit.
        culprit = finding.tensor(Role.CULPRIT)
        told = () if culprit is None or finding.details.holder else culprit.names
        names = (finding.details.target, *told)
        copied = (clone_operand(program, place, name) for name in names if name)
        yield "clone_argument", next((edits for edits in copied if edits), None)
        return
    write = write_at(program, place)
    if write is None:
        yield "not_inplace", module_not_inplace(program, place)
        return
    if finding.details.aliased:
        return
    target = _written(finding, write)
    name = target.id if isinstance(target, ast.Name) else ""
    if name and (edits := returned_from_hook(program, place, name)):
        yield "return_from_hook", edits
    elif write.form is Form.CALL:
        yield "not_inplace", module_not_inplace(program, place)
        yield "out_of_place", out_of_place(program, place)
    elif changes_argument(program, place, target):
        yield from _for_the_caller(finding, program, target)
    else:
        yield from _in_place_of_the_write(finding, program, place, write, target)


def _in_place_of_the_write(
    finding: Finding[Details],
    program: Program,
    place: Place,
    write: SourceWrite,
    target: ast.expr,
) -> Fixes:
    part = write.form is Form.ITEM and not isinstance(target, ast.Subscript)
    yield "out_of_place", element_replaced(program, place)
    new = _new_tensor(finding, program, target, part)
    # Others may look at the buffer that is filled item by item: the saver's copy is safer,
    # unless several operations saved parts of it.
    enough = not part and rebinding_is_enough(program, place, target)
    if not enough and finding.details.savers == 1:
        yield from _at_the_saver(finding, program)
    yield from new
    if isinstance(target, ast.Name):  # an argument that is given back: the caller may see it, too
        yield "clone_argument", _clone_for_call(finding, program, target.id)


def _new_tensor(finding: Finding[Details], program: Program, target: ast.expr, part: bool) -> Fixes:
    place = finding.place(What.CHANGED)
    assert place is not None
    name = ast.unparse(target)
    if isinstance(target, ast.Subscript) and ast.unparse(target.value) in finding.details.tuples:
        yield "out_of_place", tuple_rebuilt(program, place, finding.details.tuples)
        return
    if not part:
        edits = out_of_place(program, place) or out_of_place(program, place, name)
        if edits:
            yield "out_of_place", edits
            return
    copied = functional_write(program, place) or functional_write(program, place, name)
    yield "functional_write", copied or clone_before_write(program, place, name)


def _for_the_caller(finding: Finding[Details], program: Program, target: ast.expr) -> Fixes:
    """The function writes to its argument and returns nothing of it: the caller makes the copy."""
    place = finding.place(What.CHANGED)
    assert place is not None and isinstance(target, ast.Name)
    copied = _clone_for_call(finding, program, target.id)
    yield "clone_argument", copied
    if finding.details.savers == 1:
        yield from _at_the_saver(finding, program)
    if copied is None:
        yield "out_of_place", out_of_place(program, place)


def _clone_for_call(finding: Finding[Details], program: Program, name: str) -> Edits | None:
    write = finding.event(What.CHANGED)
    if write is None or write.place is None:
        return None
    return clone_for_call(program, write.place, name, write.chain)


def _written(finding: Finding[Details], write: SourceWrite) -> ast.expr:
    """The tensor as the write calls it: `xs[0]` where xs is a list, else what it shows."""
    try:
        named = ast.parse(finding.details.target, mode="eval").body
    except SyntaxError:
        return write.target
    plain = isinstance(named, (ast.Name, ast.Attribute, ast.Subscript))
    return named if plain else write.target


def _computed_again(finding: Finding[Details], program: Program) -> Edits | None:
    """What was computed of the old parameter, where a part of the loss comes behind the write."""
    write, failed = finding.details.write, finding.details.failed
    if write is None or failed is None:
        return None
    forward, at = finding.details.forward, moment_of(program, write)
    behind = [p for p in forward if at < moment_of(program, p) < moment_of(program, failed)]
    return recompute_behind(program, forward, write, failed) if behind else None


def _before_the_saver(finding: Finding[Details], program: Program) -> Edits | None:
    """The statement that writes, or calls what does, put before the first that saves what is
    written, in the function around both: where somebody else runs backward there is no later place
    for it."""
    saved, changed = finding.event(What.SAVED), finding.event(What.CHANGED)
    if saved is None or changed is None:
        return None
    goals = (saved.place, *saved.chain, *finding.details.readers)
    moves = (called_sooner(program, write, *goals) for write in (changed.place, *changed.chain))
    return next((edits for edits in moves if edits), None)


def _at_the_saver(finding: Finding[Details], program: Program) -> Fixes:
    """The operation saves a copy, or the program goes on with one."""
    saver, write = finding.place(What.SAVED), finding.place(What.CHANGED)
    if saver is None or saver == write or _within(finding, saver):
        return  # one call saves and overwrites: a copy of what it returns comes too late
    if finding.details.is_result:
        yield "clone_result", clone_result(program, saver)
    elif finding.details.operand:
        yield "clone_operand", clone_operand(program, saver, finding.details.operand)


def _within(finding: Finding[Details], saver: Place) -> bool:
    """Whether the write happened while the saving line ran (a hook of the module it calls)."""
    write = finding.event(What.CHANGED)
    outer = () if write is None else write.chain
    return any(p.line_id == saver.line_id for p in outer)
