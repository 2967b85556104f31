"""Take out the cut; ask for the tensor that was used; or accept that the input is unused."""

import ast
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from autograd_explain.inspect.dataflow import CutKind
from autograd_explain.inspect.dataflow.grad_mode import OffBy
from autograd_explain.model import Place, What
from autograd_explain.program import Program, called_name
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.edits import Step, then
from autograd_explain.rewrite.transforms.call_edits import read_instead
from autograd_explain.rewrite.transforms.grad_mode import out_of_block
from autograd_explain.rewrite.transforms.reconnect import reconnected
from autograd_explain.rewrite.transforms.spot import Spot
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_all,
    apply_patches,
    replacement,
    tensors_instead_of_copy,
    without_ending,
)
from autograd_explain.rewrite.transforms.with_graph import with_graph

from .diagnose import Details
from .unused import counted_as_zero, unused_allowed, unused_as_zeros


def _recorded(site: Site[Details]) -> Edits | None:
    """What one place turned off is recorded again."""
    if [way for _, way in site.details.cuts] not in ([OffBy.DECORATOR], [OffBy.BLOCK]):
        return None
    return out_of_block(site.program, site.place, site.details.unrecorded)


def _connected(site: Site[Details]) -> Edits | None:
    """Every cut on the way goes, so that the result depends on the input."""
    cuts = site.details.cuts
    if cuts and all(called_name(site.at(place).node) == "Parameter" for place, _ in cuts):
        return apply_all(tensors_instead_of_copy(site.program, p, False) for p, _ in cuts)
    if not all(isinstance(way, CutKind) for _, way in cuts):
        return None
    return reconnected(site.program, [_left(site.program, p, way) for p, way in cuts if p])


def _left(program: Program, place: Place, way: CutKind | OffBy) -> Place:
    """Where a copied value leaves torch: `x.numpy()` of `torch.tensor(x.numpy())`."""
    source, call = program.source_at(place), program.expression_at(place)
    if way is not CutKind.COPY or source is None or not isinstance(call, ast.Call):
        return place
    given = (n for a in call.args[:1] for n in ast.walk(a) if isinstance(n, ast.expr))
    ends = (n for n in given if without_ending(n) is not n)
    return next((source.place(n.lineno, place.function, n) for n in ends), place)


def _part_taken_last(site: Site[Details]) -> Edits | None:
    """`grad(u, x[:, :1])[0]` -> `grad(u, x)[0][:, :1]`, at every call that is asked for a part."""
    program, patches = site.program, []
    for part in reversed(site.details.parts):  # the last of two at one point comes first
        patches += replacement(program, part.argument, site.details.whole)
        source, span = program.source_at(part.argument), part.result and part.result.span
        patches += [Patch(source, span.end, part.index)] if source and span else []
    edits = apply_patches(patches)
    for part in reversed(site.details.parts):
        if part.result is None:
            named = partial(_part_of_named, f"{part.target} = {part.target}{part.index}")
            edits = then(program, edits, named, replace(part.argument, span=None))
    return edits


def _part_of_named(code: str, program: Program, place: Place) -> Edits | None:
    return Spot(program, place).behind(code)


def _not_handed_over(site: Site[Details]) -> Edits | None:
    """`model = offload(model)` is left out; elsewhere the module takes the place of the call."""
    place, module = site.details.given or (None, "")
    return site.at(place).left_out(module)


def _handed_in(site: Site[Details]) -> Edits | None:
    """`net(ids)` -> `net(None, vectors=v)`; `y = f(x)` -> `y = v` where `v = f(x)`."""
    handed, call = site.details.handed, site.call
    if handed is None or call is None:
        return None
    if not handed.parameter:
        return site.replaced("{code}", code=handed.value)
    given = [*call.args, *(k.value for k in call.keywords)][handed.at]
    shared = site.of(given).with_code("None") if handed.left_out else []
    return apply_patches([*shared, *site.with_argument(handed.parameter, handed.value)])


def _told(transform: Step) -> Callable[[Site[Details]], Edits | None]:
    """What a transformer tells the call that asks for the gradient."""
    return lambda site: transform(site.program, site.details.asked or site.place)


propose: Propose[Details] = by_table(
    Fix("not_handed_over", _not_handed_over, changes=True),
    Fix("record", _recorded, intended_difference=True),
    Fix("uncut", _connected, when=lambda d: d.cuts != (), intended_difference=True),
    Fix("with_graph", lambda s: with_graph(s.program, s.details.kept), intended_difference=True),
    Fix("handed_in", _handed_in, intended_difference=True),
    Fix("take_part", _part_taken_last, when=lambda d: d.parts != (), intended_difference=True),
    Fix("use_dead", lambda s: read_instead(s.program, s.details.dead), changes=True),
    Fix("use_source", lambda s: s.replaced("{code}", code=s.details.source), changes=True),
    # One loss of several skips a part of the parameters: its gradient is zero.
    Fix("zeros", _told(unused_as_zeros), when=lambda d: d.several and d.reached, changes=True),
    Fix(
        "zeros",
        lambda s: counted_as_zero(s.program, s.finding.place(What.FAILED)),
        when=lambda d: d.asked is None,
        changes=True,
    ),
    Fix("allow_unused", _told(unused_allowed), when=lambda d: d.reached, changes=True),
)
