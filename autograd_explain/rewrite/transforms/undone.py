"""What takes back that a statement switched something: the same statement with the other flag, or
with the method that is paired with the one called."""

from __future__ import annotations

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ...program_index import index_of
from ..analysis.effects import fresh
from ..engine.cst_tools import called_name, called_on, dotted, make, positional, walk
from ..engine.draft import Draft
from ..engine.tree import Block, Statement, Tree, statement_at, statements_in

_LISTS = ("parameters", "named_parameters", "modules", "named_modules", "children")


def whole_loop(tree: Tree, own: Statement) -> Statement:
    """The loop over parameters or layers around `p.requires_grad = False`, or around one that does
    nothing else."""
    found = own
    for loop in tree.loops(own):
        alone = tree.siblings(found)[0] == [found]
        if not isinstance(loop, cst.For) or not (alone or called_on(loop.iter, *_LISTS)):
            break
        found = loop
    return found


def undone(tree: Tree, own: Statement, method: str) -> Statement | None:
    """`D.requires_grad_(True)` for `D.requires_grad_(False)` and for `freeze(D)`; the loop that
    sets the flags; the call of `method`, where one is paired with the one called."""
    calls = [n for n in walk(own) if isinstance(n, cst.Expr) and isinstance(n.value, cst.Call)]
    call = calls[0].value if len(calls) == 1 else None
    if method and isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        return _replaced(own, call.func.attr, cst.Name(method))
    flags = [n for n in walk(own) if isinstance(n, cst.Name) and n.value == "False"]
    if len(flags) == 1:
        return _replaced(own, flags[0], cst.Name("True"))
    if not isinstance(own, cst.Expr) or not isinstance(call, cst.Call):
        return None
    name, given = called_name(call), positional(call)
    if any(index_of(tree.program).defined(f"un{name}", tree.source)):
        return cst.Expr(call.with_changes(func=cst.Name(f"un{name}")))
    if len(given) != 1 or dotted(given[0].value) is None:
        return None
    return make("{x}.requires_grad_(True)", x=given[0].value)


def _replaced(own: Statement, old: cst.CSTNode, new: cst.Name) -> Statement | None:
    made = own.deep_replace(old, new)
    return made if isinstance(made, Statement) else None


def undone_behind(program: Program, place: Place | None, method: str) -> Edits | None:
    """What the statement at a place did is taken back by `method`, and so is what later ones of the
    block do that call the same for something else and that nothing takes back: before the next of
    these, or at the end; before a `return`, whose value is computed first."""
    tree, own = statement_at(program, place)
    if own is None or not method:
        return None
    loop = whole_loop(tree, own)
    undo, block = undone(tree, loop, method), tree.block_of(loop)
    if undo is None or block is None:
        return None
    draft, (order, at) = Draft(tree), tree.siblings(loop)
    called, written = _called(own), {tree.code(s) for s in tree.statements}
    others = [s for s in order[at + 1 :] if called and _called(s) == called]
    backs = [undo, *(undone(tree, s, method) for s in others)]
    for back, other in zip(backs, [*others, None], strict=True):
        if back is None or (back is not undo and tree.code(back) in written):
            continue
        written.add(tree.code(back))
        if other is None:
            _at_end(draft, _last(block), back)
        else:
            draft.before(other, [back])
    return draft.edits()


def _at_end(draft: Draft, last: Statement, undo: Statement) -> None:
    """Behind the last statement; a `return` stays the last."""
    if not isinstance(last, cst.Return):
        draft.after(last, [undo])
    elif last.value is None or isinstance(last.value, cst.Name):
        draft.before(last, [undo])
    else:
        name = cst.Name(fresh(draft.tree, last, "result"))  # the value is computed first
        kept = make("{n} = {v}", n=name, v=last.value)
        draft.instead(last, [kept, undo, last.with_changes(value=name)])


def _last(block: Block) -> Statement:
    """The last statement, in a `with` at the end the last one of that where it returns."""
    last = statements_in(block)[-1]
    inner = last
    while isinstance(inner, cst.With):
        inner = statements_in(inner.body)[-1]
    return inner if isinstance(inner, cst.Return) else last


def _called(statement: Statement) -> str | None:
    """`self.toggle` of the statement `self.toggle(first)`."""
    value = statement.value if isinstance(statement, cst.Expr) else None
    return dotted(value.func) if isinstance(value, cst.Call) else None
