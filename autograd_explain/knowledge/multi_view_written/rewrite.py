"""A new tensor instead of the write; new elements where a loop writes the views."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from itertools import takewhile
from typing import TypeAlias

import libcst as cst

from autograd_explain.model import Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Proposal, Propose, Site, by_table, differing, same
from autograd_explain.rewrite.analysis.effects import can_rebind, read_later, used_names
from autograd_explain.rewrite.analysis.inplace_writes import base_of, is_view, written_in
from autograd_explain.rewrite.engine.cst_tools import (
    called_on,
    dotted,
    method_name,
    named_targets,
    single_targets,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.edits import then
from autograd_explain.rewrite.engine.imports import torch_at
from autograd_explain.rewrite.engine.tree import Statement, Tree, statement_at
from autograd_explain.rewrite.transforms.clone import (
    clone_argument,
    clone_unpacked,
    functional_write,
)
from autograd_explain.rewrite.transforms.grad_mode import under_no_grad
from autograd_explain.rewrite.transforms.hooks import hook_on_output
from autograd_explain.rewrite.transforms.indexed_loop import write_before_views
from autograd_explain.rewrite.transforms.inplace_modules import (
    module_not_inplace,
    modules_set_not_inplace,
)
from autograd_explain.rewrite.transforms.out_of_place import out_of_place
from autograd_explain.rewrite.transforms.spot import Spot

from .collected_loop import collected_loop, joined, parts_of
from .diagnose import Details, Write

#: Edits with the sections of the texts that tell them; None where one cannot be made.
Fixes: TypeAlias = Iterator[tuple[str, Edits | None]]


def _proposed(site: Site[Details]) -> Iterator[Proposal]:
    write = site.finding.place(What.CHANGED) or site.place
    for fix, edits in _fixes(site.details, site.program, write):
        changes = fix == "out_of_place" and site.details.write is Write.BASE
        yield from (differing if changes else same)(fix, edits)


def _fixes(details: Details, program: Program, write: Place) -> Fixes:
    if details.sets_values:
        return iter([("no_grad", _under_no_grad(program, write, details.maker))])
    if details.write is Write.BASE:
        return _of_base(details, program, write)
    if details.write is Write.MODULE:
        return _of_module(details, program, write)
    if details.write is Write.LIBRARY:
        return iter([("tensor_hook", hook_on_output(program, details.hook))])
    if details.write is Write.ROW:
        return iter([("collect", collected_loop(program, write, details.tensor, tensor=True))])
    return _of_parts(details, program, write)


def _under_no_grad(program: Program, write: Place, maker: Place | None) -> Edits | None:
    """The write and those of the same views that follow it at once, refused in turn."""
    tree, first = statement_at(program, write)
    made = tree.statement(maker)
    if first is None:
        return None
    views = {*(named_targets(made) if isinstance(made, cst.Assign) else ()), *_bases(tree, first)}
    inside, at = tree.siblings(first)
    following = takewhile(lambda s: not views.isdisjoint(_bases(tree, s)), inside[at + 1 :])
    return under_no_grad(program, write, tree.place([first, *following][-1]))


def _bases(tree: Tree, statement: Statement) -> set[str | None]:
    """What a statement writes, or writes a part of."""
    return {dotted(base_of(t)) for t in written_in(tree, statement)}


def _of_base(details: Details, program: Program, write: Place) -> Fixes:
    if details.maker is not None and details.reached is not None:
        yield "write_first", write_before_views(program, write, details.maker, details.reached)
    yield "out_of_place", out_of_place(program, write) or functional_write(program, write)


def _of_module(details: Details, program: Program, write: Place) -> Fixes:
    # Where torch called the module, the failing line does not spell it.
    callee = None if details.called_by_torch else details.module
    constructed = module_not_inplace(program, write, callee)
    yield "not_inplace", constructed
    yield "clone", clone_argument(program, write, details.module)
    # A library's functions may write in place, too: the hook is what the user has of all of it.
    yield "tensor_hook", hook_on_output(program, details.hook)
    if constructed is None:
        yield "not_inplace", modules_set_not_inplace(program, write, details.owner)


def _of_parts(details: Details, program: Program, write: Place) -> Fixes:
    maker, tensor, fixed = details.maker, details.tensor, details.in_tuple
    # `for part in x.chunk(2):` gives x its new value, so that who reads x later sees it.
    head = maker and isinstance(program.statement_at(maker), ast.For) and maker.line != write.line
    if maker is not None and (head or not details.base_read_later):
        yield "collect", collected_loop(program, write, tensor)
    together = _put_together(program, write, maker, tensor) if details.base_read_later else None
    yield "out_of_place", together or _new_tensor(program, write, maker, tensor, fixed)
    yield "out_of_place", None if fixed else functional_write(program, write)
    yield "clone", None if maker is None else clone_unpacked(program, maker, tensor)


def _new_tensor(
    program: Program, write: Place, maker: Place | None, tensor: str, fixed: bool
) -> Edits | None:
    """`gate = gate.sigmoid()`; an element of a tuple can only be replaced once it is a list."""
    if not tensor.endswith("]") or maker is None:
        first = None if fixed else out_of_place(program, write, tensor)
        return _siblings_too(program, first, maker, write)
    listed = Spot(program, maker).replaced("list({x})")  # of `x.unbind(1)`
    return then(program, listed, partial(out_of_place, target=tensor), write)


def _put_together(program: Program, write: Place, maker: Place | None, tensor: str) -> Edits | None:
    """New tensors for the views that one unpacking made, and behind the last write of them what
    they were parts of made of them again: who reads it there is to see what was written."""
    tree, made = statement_at(program, maker)
    torch, names = torch_at(program, maker), [dotted(t) or "" for t in single_targets(made)]
    call = made.value if isinstance(made, cst.Assign) else None
    found = parts_of(call, torch) if isinstance(call, cst.Call) and torch is not None else None
    if found is None or made is None or tensor not in names or "" in names:
        return None
    (whole, join, dim), (order, at) = found, tree.siblings(made)
    written = [s for s in order[at:] if {*map(dotted, written_in(tree, s))} & {*names}]
    base = dotted(whole)
    if not written or tree.place(written[0]).line != write.line or base is None or is_view(whole):
        return None
    between = order[at + 1 : order.index(written[-1]) + 1]
    if any(base.partition(".")[0] in used_names(s) for s in between):
        return None
    if not can_rebind(tree, written[-1], whole):
        return None
    again = joined(whole, f"{torch}.{join}", f"[{', '.join(names)}]", dim)
    edits = Draft(tree).after(written[-1], [again]).edits()
    edits = then(program, edits, partial(out_of_place, target=tensor), write)
    return _siblings_too(program, edits, maker, write)


def _siblings_too(
    program: Program, edits: Edits | None, maker: Place | None, write: Place
) -> Edits | None:
    """… and new tensors for the other views that one unpacking made, or a like one of what is read
    no more, where they are written behind this one: torch refuses these next."""
    tree, made = statement_at(program, maker)
    other, first = statement_at(program, write)
    if first is None or other is not tree or not isinstance(made, cst.Assign):
        return edits
    inside = [s for s in tree.statements if tree.scope_of(s) is tree.scope_of(first)]
    kind = method_name(made.value)
    split = [s for s in inside if s is made or (kind and _unread_whole(tree, s, kind))]
    views = {name for s in split for name in named_targets(s) if len(named_targets(s)) > 1}
    for statement in (s for s in inside if tree.start(s) > tree.start(first)):
        for name in views.intersection(map(dotted, written_in(tree, statement))):
            again = partial(out_of_place, target=name)
            edits = then(program, edits, again, tree.place(statement)) or edits
    return edits


def _unread_whole(tree: Tree, made: Statement, kind: str) -> bool:
    """Whether the statement splits a value, `a, b = x.chunk(2)`, that nobody reads after it."""
    whole = called_on(made.value, kind) if isinstance(made, cst.Assign) else None
    return isinstance(whole, cst.Name) and not read_later(tree, made, whole.value)


propose: Propose[Details] = by_table(_proposed, at=What.FAILED)
