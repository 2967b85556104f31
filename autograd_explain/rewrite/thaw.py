"""Modules that a helper freezes in turn, each thawed again where it is its turn to learn."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Edit, Place
from ..program import Program
from .code import dotted, parse, statement, walk
from .draft import Draft
from .locate import Statement, Tree, tree_at, tree_of


def thawed_in_turn(program: Program, freezing: Place) -> tuple[Edit, ...] | None:
    """`freeze(judge)` and, in another function, `freeze(painter)`: behind each of these calls the
    other one that its function uses gets `.requires_grad_(True)`.

    `freezing` is the line of the helper that sets the flag for the parameters of its argument.
    """
    tree = tree_at(program, freezing)
    inner = None if tree is None else tree.statement(freezing)
    helper = None if tree is None or inner is None else tree.scope_of(inner)
    if not isinstance(helper, cst.FunctionDef) or not _takes_module(helper):
        return None
    calls = [c for s in program.cells for c in _calls(tree_of(s), helper.name.value)]
    modules = {path for _, _, path in calls}
    drafts: dict[int, Draft] = {}
    for where, call, path in calls:
        scope = where.scope_of(call)
        used = {dotted(n) for n in walk(scope)} if isinstance(scope, cst.FunctionDef) else set()
        new = [m for m in sorted(modules - {path}) if m in used]
        if new:
            draft = drafts.setdefault(id(where), Draft(where))
            draft.after(call, [statement("{x}.requires_grad_(True)", x=parse(m)) for m in new])
    edits = [draft.edit() for draft in drafts.values()]
    done = tuple(e for e in edits if e is not None)
    return done if done and len(done) == len(edits) else None


def _takes_module(helper: cst.FunctionDef) -> bool:
    """Whether it reads `.parameters()` of its first parameter, so that this is a module."""
    first = [p.name.value for p in helper.params.params[:1]]
    return any(dotted(n) in [f"{name}.parameters" for name in first] for n in walk(helper.body))


def _calls(tree: Tree | None, name: str) -> Iterator[tuple[Tree, Statement, str]]:
    """The statements `name(module)`, with what they are given."""
    for found in () if tree is None else tree.statements:
        call = found.value if isinstance(found, cst.Expr) else None
        if isinstance(call, cst.Call) and dotted(call.func) == name and len(call.args) == 1:
            path = dotted(call.args[0].value)
            if tree is not None and path is not None:
                yield tree, found, path
