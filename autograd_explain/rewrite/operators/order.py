"""Statements moved, left out, run once more."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from ...program_index import index_of
from ..analysis.effects import effects
from ..engine.cst_tools import called_name, calls_in, dotted, method_name, single_targets
from ..engine.draft import Draft
from ..engine.tree import Statement
from ..transforms.recompute import compute_all_in_loop, recompute_before
from ..transforms.training_step import makes_layer
from .site import Change, Site

_REACH = 6  #: statements that one is moved past at most
_CHAIN = 4  #: statements that are computed again at most
_DECLARES = (cst.Import, cst.ImportFrom, cst.FunctionDef, cst.ClassDef, cst.Global, cst.Nonlocal)


def move(site: Site) -> Iterator[Change]:
    """The statement to another line of its block, or out of the block that it ends or begins."""
    own = site.statement
    if isinstance(own, (*_DECLARES, cst.Return)):
        return
    inside, at = site.tree.siblings(own)
    for goal in range(max(0, at - _REACH), min(len(inside), at + _REACH + 1)):
        passed = inside[goal:at] if goal < at else inside[at + 1 : goal + 1]
        if goal != at and _matters(own, inside[goal]) and not _loses_name(site, own, passed):
            yield _moved(site, [own], inside[goal], goal > at)
    outer = site.tree.outer(own)
    if isinstance(outer, (cst.For, cst.While, cst.With, cst.If)) and len(inside) > 1:
        for after, passed in ((True, inside[at + 1 :]), (False, inside[:at])):
            if not _loses_name(site, own, passed):
                yield _moved(site, [own], outer, after)


def _matters(own: Statement, other: Statement) -> bool:
    """Whether it may make a difference on which side of the other a statement stands."""
    if isinstance(other, (*_DECLARES, cst.Return)):
        return False
    return _acts(other) or (_acts(own) and isinstance(other, cst.Assign))


def _loses_name(site: Site, own: Statement, passed: list[Statement]) -> bool:
    """Whether a name would be read before the one statement that gives it a value."""
    up = bool(passed) and site.tree.start(passed[0]) < site.tree.start(own)
    for other in passed:
        maker, reader = (other, own) if up else (own, other)
        given = {t.value for t in single_targets(maker) if isinstance(t, cst.Name)}
        first = given & effects(reader).reads if isinstance(maker, cst.Assign) else set()
        above = replace(site, statement=maker).above
        if first and not any(first & effects(s).writes for s in above):
            return True
    return False


def _acts(statement: Statement) -> bool:
    """Whether it changes something beside the names it binds: others see a difference where it
    stands."""
    if isinstance(statement, cst.Assign):
        return any(isinstance(t.target, cst.Subscript) for t in statement.targets)
    return True


def delete(site: Site) -> Iterator[Change]:
    """The statement left out."""
    own = site.statement
    if isinstance(own, (cst.Expr, cst.Assign, cst.AugAssign)):
        code = site.tree.code(own).strip()
        yield site.change("delete", code, lambda: Draft(site.tree).remove(own).edits(), group=code)


def repeat_first(site: Site) -> Iterator[Change]:
    """A call that stands elsewhere in the block (`opt.zero_grad()`), once more before this."""
    own = site.statement
    for other in site.tree.siblings(own)[0]:
        if other is not own and isinstance(other, cst.Expr) and isinstance(other.value, cst.Call):
            again = Draft(site.tree).before(own, [other])
            yield site.change("repeat", other, again.edits)


def computed_again(site: Site) -> Iterator[Change]:
    """The statements behind what is read here, computed in this round, or once more before it."""
    chain = _chain(site)
    program, place = site.program, site.place
    for length in range(1, len(chain) + 1):
        places = [site.tree.place(s) for s in chain[-length:]]
        code = ", ".join(sorted({w for s in chain[-length:] for w in effects(s).writes}))
        yield site.change("compute_in_loop", code, compute_all_in_loop, program, places, place)
        yield site.change("compute_again", code, recompute_before, program, place, places)


def _chain(site: Site) -> list[Statement]:
    """The assignments above whose values lead here, in the order of the text."""
    if not any(method_name(c) in ("backward", "grad", "step") for c in site.calls):
        return []
    wanted = {path.partition(".")[0] for path in effects(site.statement).reads}
    found: list[Statement] = []
    for other in site.above:
        own = effects(other)
        written = {path.partition(".")[0] for path in own.writes}
        if isinstance(other, cst.Assign) and written & wanted and not _is_trained(site, other):
            found.insert(0, other)
            wanted |= {path.partition(".")[0] for path in own.reads}
    return found[-_CHAIN:]


def _is_trained(site: Site, statement: Statement) -> bool:
    """Whether it makes a model, parameters or an optimizer: made once more they begin anew."""
    return any(
        makes_layer(site.imports, call)
        or site.imports.full(dotted(call.func)).startswith("torch.optim.")
        or any("Module" in ast.unparse(base) for base in _bases(site, call))
        for call in calls_in(statement)
    )


def _bases(site: Site, call: cst.Call) -> list[ast.expr]:
    """Those of the classes of the program that a call may make an object of."""
    classes = index_of(site.program).classes(called_name(call))
    return [base for _, node in classes for base in node.bases]


def _moved(site: Site, run: list[Statement], target: Statement, after: bool) -> Change:
    return site.change("move", run[0], lambda: Draft(site.tree).move(run, target, after).edits())
