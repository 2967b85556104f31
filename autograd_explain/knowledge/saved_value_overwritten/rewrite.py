"""Leave the saved value alone: write elsewhere, or let the operation save a copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeAlias

from autograd_explain.inspect.facts.rebinding import (
    changes_argument,
    hands_back_argument,
    rebinding_is_enough,
)
from autograd_explain.inspect.facts.statements import Form, SourceWrite, write_at
from autograd_explain.model import Place, Role, What
from autograd_explain.program import Program, expression_of
from autograd_explain.rewrite import Edits, Proposal, Propose, Site, by_table, differing, same
from autograd_explain.rewrite.engine.edits import each, then
from autograd_explain.rewrite.transforms.clone import (
    clone_alias,
    clone_before_write,
    clone_operand,
    clone_result,
    functional_write,
    view_of_read_later,
)
from autograd_explain.rewrite.transforms.detach import detached_at
from autograd_explain.rewrite.transforms.indexed_loop import element_replaced
from autograd_explain.rewrite.transforms.inplace_modules import module_not_inplace
from autograd_explain.rewrite.transforms.move_statement import move_after, move_before
from autograd_explain.rewrite.transforms.out_of_place import new_tensor, out_of_place
from autograd_explain.rewrite.transforms.recompute import assigned_again
from autograd_explain.rewrite.transforms.spot import Spot

from .clone_for_call import clone_for_call
from .diagnose import Details
from .hook_output import returned_from_hook
from .layer_copies import with_copies
from .tuple_element import tuple_rebuilt

#: Edits with the sections of the texts that tell them; None where one cannot be made.
Fixes: TypeAlias = Iterator[tuple[str, Edits | None]]


_NEW = ("out_of_place", "functional_write")
_INTENDED = ("move_write", "assign_again", "detach_untrained")


def _proposed(site: Site[Details]) -> Iterator[Proposal]:
    found = False
    for fix, edits in _with_further_writes(site):
        if edits:
            # An update that waits uses the gradients of both backwards; what is computed again
            # knows the new values.
            move, found = fix in _INTENDED, True
            yield Proposal(fix, edits, intended_difference=move, corrects=_corrects(fix, site))
    if not found and site.details.parameter:
        yield from same("clone_operand", with_copies(site.program, site.details.layers))
        yield from differing("write_first", _before_the_saver(site))


def _corrects(fix: str, site: Site[Details]) -> bool:
    """Whether the program as it is may not be meant, and this takes the write out of it: a function
    that gives its result back writes to its argument on the way, or a library writes to what it is
    given and the program goes on with what it returns."""
    write = site.finding.event(What.CHANGED)
    if write is None or write.place is None:
        return False
    if fix == "clone_argument":
        goes_on = isinstance(site.at(write.place).statement, (ast.Assign, ast.Return))
        return goes_on and write.inside is not None
    leaks = hands_back_argument(site.program, write.place, site.details.target)
    return leaks and not fix.startswith("clone")


def _with_further_writes(site: Site[Details]) -> Fixes:
    """Each candidate with the other overwritten tensors spared as well, where that can be done; a
    copy may do alone."""
    anew = partial(_anew, site.details.tuples)
    for fix, found in _candidates(site):
        edits = whole = _stored(site, found) if fix in _NEW else found
        for write in site.details.further:
            whole = then(site.program, whole, anew, replace(write, span=None))
        yield fix, whole
        if whole is None or fix.startswith("clone"):
            yield fix, edits


def _stored(site: Site[Details], edits: Edits | None) -> Edits | None:
    """`v = v * mu`, and behind it `velocity[k] = v`: who reads it there is to see the new value."""
    write, stored = site.finding.place(What.CHANGED) or site.details.alone, "{owner} = {v}"
    parts = {"owner": site.details.owner, "v": site.details.target}
    if not site.details.owner or write is None:
        return edits
    line = replace(write, span=None)
    return then(site.program, edits, lambda p, at: Spot(p, at).behind(stored, **parts), line)


def _anew(tuples: Mapping[str, int], program: Program, place: Place) -> Edits | None:
    return tuple_rebuilt(program, place, tuples) if tuples else new_tensor(program, place)


def _candidates(site: Site[Details]) -> Fixes:
    write = site.finding.place(What.CHANGED)
    alias = site.finding.place(What.CREATED) if site.details.aliased else None
    if alias is not None:
        one = site.details.savers == 1
        if one and write is not None and view_of_read_later(site.program, alias, write):
            yield from _at_the_saver(site)
        yield "clone_alias", clone_alias(site.program, alias)
    ways: list[tuple[str, Edits | None]] = []
    alone, program = site.details.alone, site.program
    only = write_at(program, alone)
    if alone and only and rebinding_is_enough(program, alone, only.target):
        yield from _new_tensor(site, alone, only.target, part=False)
    if write is not None and site.details.parameter:
        # A parameter stays the tensor that modules and optimizers hold: the write waits, unless
        # the program goes on computing with what it wrote.
        late = site.details.write, site.details.failed
        yield "detach_untrained", detached_at(site.program, site.details.untrained)
        yield "assign_again", assigned_again(site.program, site.details.failed)
        yield "move_write", move_after(site.program, *late, unseen=True)
    elif write is not None:
        ways = list(_at_the_write(site, write))
    yield from ways
    if site.details.savers == 1 or not any(edits for _, edits in ways):
        yield from _at_the_saver(site)


def _at_the_write(site: Site[Details], place: Place) -> Fixes:
    """The write makes a new tensor, where no other name has to see the change."""
    changed = site.finding.event(What.CHANGED)
    if changed is not None and changed.inside is not None:
        # A library writes to what it is given: its file is not ours to edit.
        culprit = site.finding.tensor(Role.CULPRIT)
        told = () if culprit is None or site.details.holder else culprit.names
        names = (site.details.target, *told)
        copied = (clone_operand(site.program, place, name) for name in names if name)
        yield "clone_argument", next((edits for edits in copied if edits), None)
        return
    write = write_at(site.program, place)
    if write is None:
        yield "not_inplace", module_not_inplace(site.program, place)
        return
    if site.details.aliased:
        return
    target = _written(site, write)
    name = target.id if isinstance(target, ast.Name) else ""
    if name and (edits := returned_from_hook(site.program, place, name)):
        yield "return_from_hook", edits
    elif write.form is Form.CALL:
        yield "not_inplace", module_not_inplace(site.program, place)
        yield "out_of_place", out_of_place(site.program, place)
    elif changes_argument(site.program, place, target):
        yield from _for_the_caller(site, place, name)
    else:
        yield from _in_place_of_the_write(site, place, write, target)


def _in_place_of_the_write(
    site: Site[Details], place: Place, write: SourceWrite, target: ast.expr
) -> Fixes:
    part = write.form is Form.ITEM and not isinstance(target, ast.Subscript)
    yield "out_of_place", element_replaced(site.program, place)
    new = _new_tensor(site, place, target, part)
    # Others may look at the buffer that is filled item by item: the saver's copy is safer,
    # unless several operations saved parts of it.
    enough = not part and rebinding_is_enough(site.program, place, target)
    if not enough and site.details.savers == 1:
        yield from _at_the_saver(site)
    yield from new
    if isinstance(target, ast.Name):  # an argument that is given back: the caller may see it, too
        yield "clone_argument", _clone_for_call(site, place, target.id)


def _new_tensor(site: Site[Details], place: Place, target: ast.expr, part: bool) -> Fixes:
    name = ast.unparse(target)
    if isinstance(target, ast.Subscript) and ast.unparse(target.value) in site.details.tuples:
        yield "out_of_place", tuple_rebuilt(site.program, place, site.details.tuples)
        return
    if not part:
        edits = out_of_place(site.program, place) or out_of_place(site.program, place, name)
        if edits:
            yield "out_of_place", edits
            return
    copied = functional_write(site.program, place) or functional_write(site.program, place, name)
    yield "functional_write", copied or clone_before_write(site.program, place, name)


def _for_the_caller(site: Site[Details], place: Place, name: str) -> Fixes:
    """The function writes to its argument and returns nothing of it: the caller makes the copy."""
    copied = _clone_for_call(site, place, name)
    yield "clone_argument", copied
    if site.details.savers == 1:
        yield from _at_the_saver(site)
    if copied is None:
        yield "out_of_place", out_of_place(site.program, place)


def _clone_for_call(site: Site[Details], place: Place, name: str) -> Edits | None:
    write = site.finding.event(What.CHANGED)
    return clone_for_call(site.program, place, name, () if write is None else write.chain)


def _written(site: Site[Details], write: SourceWrite) -> ast.expr:
    """The tensor as the write calls it: `xs[0]` where xs is a list, else what it shows."""
    named = expression_of(site.details.target)
    return named if isinstance(named, (ast.Name, ast.Attribute, ast.Subscript)) else write.target


def _before_the_saver(site: Site[Details]) -> Edits | None:
    """The statement that writes, or calls what does, put before the first that saves what is
    written, in the function around both: where somebody else runs backward there is no later place
    for it."""
    saved, changed = site.finding.event(What.SAVED), site.finding.event(What.CHANGED)
    if saved is None or changed is None:
        return None
    goals = (saved.place, *saved.chain, *chain.from_iterable(site.details.readers))
    first = sorted((goal for goal in goals if goal is not None), key=lambda goal: goal.line)
    moves = (
        move_before(site.program, write, goal, checked=False)
        for write in (changed.place, *changed.chain)
        for goal in first
        if isinstance(site.at(write).statement, _UNNAMED) and write and goal.line < write.line
    )
    return next((edits for edits in moves if edits), None)


#: Statements that give no name a value.
_UNNAMED = (ast.Expr, ast.AugAssign, ast.With, ast.For, ast.If)


def _at_the_saver(site: Site[Details]) -> Fixes:
    """The operation saves a copy, or the program goes on with one."""
    saver, write = site.finding.place(What.SAVED), site.finding.place(What.CHANGED)
    if saver is None or saver == write or _within(site, saver):
        return  # one call saves and overwrites: a copy of what it returns comes too late
    if site.details.is_result:
        yield "clone_result", clone_result(site.program, saver)
    elif site.details.operand:
        # One of several savers with a copy: the next one would fail.
        operands = site.details.operands or ((saver, site.details.operand),)
        copied = partial(clone_operand, detached=site.details.gains_graph)
        steps = ((partial(copied, operand=operand), place) for place, operand in operands)
        yield "clone_operand", each(site.program, steps)


def _within(site: Site[Details], saver: Place) -> bool:
    """Whether the write happened while the saving line ran: in a hook of the module it calls, or in
    a layer inside."""
    write = site.finding.event(What.CHANGED)
    outer = () if write is None else write.chain
    inside = write.place if write is not None and site.details.holder else None
    return any(p.line_id == saver.line_id for p in (*outer, inside) if p is not None)


propose: Propose[Details] = by_table(_proposed, at=What.FAILED)
