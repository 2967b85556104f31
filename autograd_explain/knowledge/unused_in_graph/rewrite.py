"""Take out the cut; ask for the tensor that was used; or accept that the input is unused."""

import ast
from dataclasses import replace

from autograd_explain.inspect.dataflow import CutKind
from autograd_explain.inspect.dataflow.grad_mode import OffBy
from autograd_explain.model import Place, Span, What
from autograd_explain.program import Program, called_name
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import expression_replaced
from autograd_explain.rewrite.transforms.leave_no_grad import out_of_block, without_decorator
from autograd_explain.rewrite.transforms.numpy_detour import in_torch
from autograd_explain.rewrite.transforms.read_instead import read_instead
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_patches,
    node_at,
    replacement,
    tensors_instead_of_copy,
    without_cut,
    without_ending,
)

from .diagnose import Details
from .side_part import PartAsked
from .unused import counted_as_zero, unused_allowed, unused_as_zeros


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
    node = node_at(program, place)
    if way is CutKind.NUMPY:
        return [] if node is None or place is None else in_torch(program, place, node) or []
    return _without_copy(program, place) if way is CutKind.COPY else []


def _part_taken_last(site: Site[Details]) -> Edits | None:
    """`grad(u, x[:, :1])[0]` -> `grad(u, x)[0][:, :1]`, at every call that is asked for a part."""
    program, patches = site.program, []
    for part in reversed(site.details.parts):  # the last of two at one point comes first
        patches += replacement(program, part.argument, site.details.whole)
        patches += _taken(program, part)
    return apply_patches(patches)


def _taken(program: Program, part: PartAsked) -> list[Patch]:
    """The part of the gradient, behind the expression or as a statement for the name of it."""
    source = program.source_at(part.argument)
    statement = program.statement_at(part.argument)
    span = part.result.span if part.result is not None else None
    if source is None or (span is None and part.result is not None):
        return []
    text = part.index
    if span is None:
        span = source.span(statement)
        lines = source.text.split("\n")
        if span is None or lines[span.end_line - 1][span.end_column :].strip():
            return []
        indent = lines[span.line - 1][: span.column]
        text = f"\n{indent}{part.target} = {part.target}{part.index}"
    end = span.end_line, span.end_column
    return [Patch(source, Span(*end, *end), text)]


def _without_copy(program: Program, place: Place | None) -> list[Patch]:
    """`torch.from_numpy(x.detach().numpy())` -> `x`."""
    node, source = node_at(program, place), program.source_at(place)
    if not isinstance(node, ast.Call) or not node.args or place is None or source is None:
        return []
    if called_name(node) == "deepcopy":  # the copy is updated; the module itself may not be
        return []
    ends = [n for n in ast.walk(node.args[0]) if isinstance(n, ast.expr)]
    left = next((n for n in ends if without_ending(n) is not n), node.args[0])
    if left is not node.args[0]:  # something computes with the values before they are copied
        return in_torch(program, place, left) or []
    inner = without_cut(program, replace(place, span=source.span(left)))
    return [*tensors_instead_of_copy(program, place, False), *inner]


propose: Propose[Details] = by_table(
    Fix("record", _recorded, intended_difference=True),
    Fix("uncut", _connected, when=lambda d: d.cuts != (), intended_difference=True),
    Fix("take_part", _part_taken_last, when=lambda d: d.parts != (), intended_difference=True),
    Fix(
        "use_dead",
        lambda s: read_instead(s.program, s.details.dead),
        when=lambda d: d.dead != (),
        changes=True,
    ),
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
        "zeros",
        lambda s: counted_as_zero(s.program, s.finding.place(What.FAILED)),
        when=lambda d: d.asked is None,
        changes=True,
    ),
    Fix(
        "allow_unused",
        lambda s: unused_allowed(s.program, s.details.asked or s.place),
        changes=True,
    ),
)
