"""Statements moved from a function to those who call it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import libcst as cst

from ...arguments import bind
from ...program_index import index_of
from ..analysis.effects import local_names, used_names
from ..engine.cst_tools import (
    Renamed,
    called_name,
    given_by,
    head,
    positional_parameters,
    repeatable,
)
from ..engine.draft import Draft
from ..engine.edits import merge
from ..engine.proposal import Edits
from ..engine.tree import Statement, Tree, tree_of
from .site import Change, Site

_MOST_CALLS = 8


def into_caller(site: Site) -> Iterator[Change]:
    """A statement of a function, in the caller's words, to behind each call of the function."""
    own, function = site.statement, site.tree.scope_of(site.statement)
    if isinstance(own, (cst.Expr, cst.AugAssign)) and isinstance(function, cst.FunctionDef):
        if site.tree.block_of(own) is function.body and len(function.body.body) > 1:
            yield site.change("into_caller", own, partial(_behind_calls, site, function))


def _behind_calls(site: Site, function: cst.FunctionDef) -> Edits | None:
    own = site.statement
    names = used_names(own) & local_names(function)
    parameters = positional_parameters(function)
    calls = list(_calls(site, function))
    if not names <= set(parameters) or not 0 < len(calls) <= _MOST_CALLS:
        return None
    drafts = {id(site.tree): Draft(site.tree).remove(own)}
    for tree, statement, call in calls:
        given = _given(parameters, call)
        if not all(repeatable(given[n]) if n in given else False for n in names):
            return None
        if isinstance(statement, cst.Return) or tree.block_of(statement) is None:
            return None
        moved = own.visit(Renamed({name: given[name] for name in names}))
        draft = drafts.setdefault(id(tree), Draft(tree))
        draft.after(statement, [moved])  # type: ignore[list-item]
    return merge(*(draft.edits() for draft in drafts.values()))


def _calls(site: Site, function: cst.FunctionDef) -> Iterator[tuple[Tree, Statement, cst.Call]]:
    """The calls of what has the function's name, with the statements that they stand in."""
    name = function.name.value
    for source in dict.fromkeys(source for source, _ in index_of(site.program).calls(name)):
        tree = site.tree if source is site.tree.source else tree_of(site.program, source)
        for statement in tree.statements:
            for node in head(statement):
                if isinstance(node, cst.Call) and called_name(node) == name:
                    yield tree, statement, node


def _given(parameters: list[str], call: cst.Call) -> dict[str, cst.BaseExpression]:
    if parameters[:1] == ["self"] and isinstance(call.func, cst.Attribute):
        return {"self": call.func.value, **bind(parameters[1:], given_by(call))}
    return bind(parameters, given_by(call))
