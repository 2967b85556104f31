"""What an installed library offers beside what the program asks of it: a function that autograd
records instead of one that hides its operations."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType, ModuleType
from typing import TypeAlias

import libcst as cst

from ...model import Edits, Place, Safety
from ...program import Program
from ...program_index import index_of
from ..engine.cst_tools import calls_in, dotted, expression
from ..engine.draft import Draft
from ..engine.edits import merge
from ..engine.imports import Imports
from ..engine.proposal import Proposal
from ..engine.tree import Tree, statement_at, tree_of

Offer: TypeAlias = tuple[str, Callable[[], Edits | None]]


def recorded_instead(program: Program, place: Place) -> Iterator[Offer]:
    """`odeint_adjoint(f, x)` -> `odeint(f, x)` in the statement at `place`: of the functions of a
    library that take the same, the one without what the other's name adds."""
    tree, statement = statement_at(program, place)
    imports = Imports.of(program, tree.source)
    for call in calls_in(statement):
        full = imports.full(dotted(call.func))
        for other in _plainer(full, call):
            yield other, partial(_calls_other, program, tree, call, full, other)


def offered_instead(program: Program, place: Place | None) -> Iterator[Proposal]:
    """The first of these that can be written, as a proposal of a cause."""
    for code, make in recorded_instead(program, place) if place is not None else ():
        if edits := make():
            changes, facts = Safety.CHANGES_MEANING, {"code": code}
            yield Proposal("repair_recorded_instead", edits, changes, facts)
            return


def _plainer(full: str, call: cst.Call) -> Iterator[str]:
    """The names of such functions, beside one that is given by its full name."""
    owner, _, name = full.rpartition(".")
    module = sys.modules.get(owner)
    if not owner or owner.partition(".")[0] == "torch" or not isinstance(module, ModuleType):
        return
    words = name.split("_")
    for other, value in list(vars(module).items()):
        fewer = set(other.split("_")) < set(words)
        if fewer and isinstance(value, FunctionType) and _takes(value, call):
            yield other


def _takes(function: FunctionType, call: cst.Call) -> bool:
    """Whether it can be called with these arguments, by their number and their names."""
    given = [a for a in call.args if a.keyword is None]
    named = {a.keyword.value: a for a in call.args if a.keyword is not None}
    if any(a.star for a in call.args):
        return False
    try:
        inspect.signature(function).bind(*given, **named)
    except (TypeError, ValueError):
        return False
    return True


def _calls_other(
    program: Program, tree: Tree, call: cst.Call, full: str, other: str
) -> Edits | None:
    """The other one under its own name, or under that which the program knows the first by."""
    owner, _, known = full.rpartition(".")
    name = Imports.of(program, tree.source).local(f"{owner}.{other}")
    if name is not None:
        return Draft(tree).replace(call.func, expression(name)).edits()
    return merge(*_imported(program, tree, owner, known, other))


def _imported(
    program: Program, tree: Tree, owner: str, known: str, other: str
) -> Iterator[Edits | None]:
    """`from m import f as g` -> `from m import other as g`, where the program imports it."""
    for source in index_of(program).namespace(tree.source):
        found = tree_of(program, source)
        for statement in found.statements:
            if not isinstance(statement, cst.ImportFrom) or statement.module is None:
                continue
            if dotted(statement.module) == owner and not isinstance(
                statement.names, cst.ImportStar
            ):
                named = (a for a in statement.names if dotted(a.name) == known)
                yield from (_renamed(Draft(found), alias, other) for alias in named)


def _renamed(draft: Draft, alias: cst.ImportAlias, other: str) -> Edits | None:
    known_by = alias.asname or cst.AsName(cst.ensure_type(alias.name, cst.Name))
    kept = None if dotted(known_by.name) == other else known_by
    return draft.replace(alias, alias.with_changes(name=cst.Name(other), asname=kept)).edits()
