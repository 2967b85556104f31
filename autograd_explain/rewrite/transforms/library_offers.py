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
from ..engine.cst_tools import calls_in, dotted, expression
from ..engine.draft import Draft, Drafts
from ..engine.proposal import Proposal
from ..engine.tree import Tree, statement_at

Offer: TypeAlias = tuple[str, Callable[[], Edits | None]]


def recorded_instead(program: Program, place: Place) -> Iterator[Offer]:
    """`odeint_adjoint(f, x)` -> `odeint(f, x)` in the statement at `place`: of the functions of a
    library that take the same, the one without what the other's name adds."""
    tree, statement = statement_at(program, place)
    for call in calls_in(statement):
        full = tree.imports.full(dotted(call.func))
        for other in _plainer(full, call):
            yield other, partial(_calls_other, tree, call, full, other)


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


def _calls_other(tree: Tree, call: cst.Call, full: str, other: str) -> Edits | None:
    """The other one under its own name, or under that which the program knows the first by:
    `from m import f as g` -> `from m import other as g`, where the program imports it."""
    owner, _, known = full.rpartition(".")
    name = tree.imports.local(f"{owner}.{other}")
    if name is not None:
        return Draft(tree).replace(call.func, expression(name)).edits()
    drafts = Drafts()
    for found in tree.namespace:
        imports = (s for s in found.statements if isinstance(s, cst.ImportFrom))
        for names in (s.names for s in imports if dotted(s.module) == owner):
            for alias in () if isinstance(names, cst.ImportStar) else names:
                if dotted(alias.name) == known:
                    drafts[found].replace(alias, _renamed(alias, other))
    return drafts.edits()


def _renamed(alias: cst.ImportAlias, other: str) -> cst.ImportAlias:
    known_by = alias.asname or cst.AsName(cst.ensure_type(alias.name, cst.Name))
    kept = None if dotted(known_by.name) == other else known_by
    return alias.with_changes(name=cst.Name(other), asname=kept)
