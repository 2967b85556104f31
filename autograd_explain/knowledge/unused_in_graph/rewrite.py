"""Take out the cut; ask for the tensor that was used; or accept that the input is unused."""

import ast
from dataclasses import replace

from autograd_explain.inspect.dataflow import CutKind
from autograd_explain.inspect.dataflow.grad_mode import OffBy
from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.leave_no_grad import out_of_block, without_decorator
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_patches,
    node_at,
    round_trip_in_torch,
    tensors_instead_of_copy,
    without_cut,
)

from .diagnose import Details
from .unused import unused_allowed, unused_as_zeros


def _recorded(site: Site[Details]) -> Edits | None:
    """What one place turned off is recorded again."""
    cuts = site.details.cuts
    way = cuts[0][1] if len(cuts) == 1 else None
    if way is OffBy.DECORATOR:
        return without_decorator(site.program, site.place)
    if way is OffBy.BLOCK:
        return out_of_block(site.program, site.place, list(site.details.unrecorded))
    return None


def _connected(site: Site[Details]) -> Edits | None:
    """Every cut on the way goes, so that the result depends on the input."""
    patches = [_uncut(site.program, place, way) for place, way in site.details.cuts]
    return apply_patches(p for group in patches for p in group) if all(patches) else None


def _uncut(program: Program, place: Place | None, way: CutKind | OffBy) -> list[Patch]:
    if way in (CutKind.DETACH, CutKind.NUMBER):
        return without_cut(program, place)
    if way is CutKind.NUMPY:
        return round_trip_in_torch(program, place)
    return _without_copy(program, place) if way is CutKind.COPY else []


def _without_copy(program: Program, place: Place | None) -> list[Patch]:
    """`torch.from_numpy(x.detach().numpy())` -> `x`."""
    node, source = node_at(program, place), program.source_at(place)
    if not isinstance(node, ast.Call) or not node.args or place is None or source is None:
        return []
    inner = without_cut(program, replace(place, span=source.span(node.args[0])))
    return [*tensors_instead_of_copy(program, place, False), *inner]


propose: Propose[Details] = by_table(
    Fix("record", _recorded, intended_difference=True),
    Fix("uncut", _connected, when=lambda d: d.cuts != (), intended_difference=True),
    Fix(
        "use_source",
        lambda s: expression_replaced(s.program, s.place, s.details.source),
        when=lambda d: d.source != "",
        changes=True,
    ),
    # One loss of several skips a part of the parameters: its gradient is zero.
    Fix(
        "zeros",
        lambda s: unused_as_zeros(s.program, s.details.asked or s.place),
        when=lambda d: d.several,
        changes=True,
    ),
    Fix(
        "allow_unused",
        lambda s: unused_allowed(s.program, s.details.asked or s.place),
        changes=True,
    ),
)
