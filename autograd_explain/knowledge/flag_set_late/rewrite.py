"""The flag first, then what is computed."""

import ast
from dataclasses import replace
from functools import partial

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.edits import merge, then
from autograd_explain.rewrite.transforms.move_statement import move_before
from autograd_explain.rewrite.transforms.spot import Spot

from .diagnose import Details, Late


def _flags_first(site: Site[Details]) -> Edits | None:
    """The flag that is told; and the others of its function, of which torch would complain next."""
    program, (told, *others) = site.program, site.details.flags
    edits = _flag_first(told, program)
    for late in others:
        edits = then(program, edits, partial(_moved, late), *late.places) or edits
    return edits


def _moved(late: Late, program: Program, *places: Place) -> Edits | None:
    return _flag_first(late.moved(*places), program)


def _flag_first(late: Late, program: Program) -> Edits | None:
    if late.callers:
        return _leaf_in_caller(late, program)
    if late.source == late.tensor:
        return move_before(program, late.flag, late.use, checked=False)
    # `net(images)` -> `net(probe)`
    read = Spot(program, None).at(*late.reads).replaced("{x}", x=late.tensor)
    moved = (replace(place, span=None) for place in (late.flag, late.use))
    return then(program, read, lambda p, *at: move_before(p, *at, checked=False), *moved)


def _leaf_in_caller(late: Late, program: Program) -> Edits | None:
    """The leaf is made before the caller computes from it, and handed in as it is."""
    flag = program.statement_at(late.flag)
    target = ast.unparse(flag.targets[0]) if isinstance(flag, ast.Assign) else ""
    itself = late.source == late.tensor != target and not late.again
    ending = "{x}.requires_grad_()" if itself else "{x} = {x}.detach().requires_grad_()"
    uses = dict.fromkeys(late.callers)
    early = [Spot(program, use).before(ending, x=given) for given, use in uses]
    if late.kept:
        return merge(*early)
    gone = [Spot(program, copy).removed() for copy in late.again]
    if target in ("", late.source, f"{late.tensor}.requires_grad"):
        gone.append(Spot(program, late.flag).removed())
    else:
        gone.append(Spot(program, late.flag).instead("{a} = {b}", a=target, b=late.source))
    return merge(*early, *gone)


propose: Propose[Details] = by_table(
    Fix("compute_anew", lambda s: s.at(s.details.told.reader).before("{x}", x=s.details.told.anew)),
    Fix("flag_first", _flags_first, when=lambda d: not d.told.apart),
)
