"""A new tensor instead of the write; a loop over indices where the base has to change."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograd_explain.inspect.facts.statements import statement_at
from autograd_explain.model import Edit, Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import (
    apply,
    clone_argument,
    clone_unpacked,
    functional_write,
    merge,
    module_not_inplace,
    out_of_place,
)
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.indexed_loop import (
    indexed_loop,
    list_of_views,
    separate_views,
    write_before_views,
)
from autograd_explain.rewrite.transforms.uncut import apply_patches

from .collected_loop import collected_loop, element_is_read

Edits = tuple[Edit, ...] | None


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    write = finding.event(What.CHANGED)
    if write is None or write.place is None:
        return
    seen = set()
    for fix, edits in _fixes(finding, program, write.place):
        if edits and edits not in seen:
            seen.add(edits)
            changes = fix == "out_of_place" and finding.variant == "base"
            safety = Safety.CHANGES_MEANING if changes else Safety.SAME_GRADIENTS
            yield Proposal(fix, edits, safety)


def _fixes(finding: Finding, program: Program, write: Place) -> Iterator[tuple[str, Edits]]:
    made = finding.event(What.CREATED)
    maker, op = (None, "") if made is None else (made.place, made.op or "")
    module, tensor = finding.facts["module"], finding.facts["tensor"]
    if finding.variant == "base":
        reached = finding.places.get("reached", ())
        if maker is not None and reached:
            yield "write_first", write_before_views(program, write, maker, reached[0])
        new = out_of_place(program, write) or functional_write(program, write)
        yield "out_of_place", new
    elif module:
        yield "not_inplace", module_not_inplace(program, write, _callee(finding))
        yield "clone", clone_argument(program, write, module)
    elif op == "loop":
        yield from _of_rows(program, write, maker, tensor)
    else:
        if op == "parts of a base read later" and maker is not None:
            yield "single_views", separate_views(program, maker)
        if op == "parts" or _in_loop_head(program, write, maker):
            yield "collect", collected_loop(program, write, tensor)
        fixed = finding.facts["holder"] == "tuple"
        yield "out_of_place", _new_tensor(program, write, maker, tensor, fixed)
        yield "out_of_place", None if fixed else functional_write(program, write)
        yield "clone", None if maker is None else clone_unpacked(program, maker, tensor)


def _of_rows(
    program: Program, write: Place, maker: Place | None, row: str
) -> Iterator[tuple[str, Edits]]:
    """Where the body also reads the row, an operation may have saved it: write no view then."""
    collected = "collect", collected_loop(program, write, row, tensor=True)
    indexed = "index_loop", None if maker is None else indexed_loop(program, maker)
    yield from (
        (collected, indexed) if element_is_read(program, write, row) else (indexed, collected)
    )


def _in_loop_head(program: Program, write: Place, maker: Place | None) -> bool:
    """`for part in x.chunk(2):` gives x its new value, so that who reads x later sees it."""
    node = statement_at(program, maker)
    return isinstance(node, ast.For) and maker is not None and maker.line != write.line


def _new_tensor(
    program: Program, write: Place, maker: Place | None, tensor: str, fixed: bool
) -> Edits:
    """`gate = gate.sigmoid()`; an element of a tuple can only be replaced once it is a list."""
    if not tensor.endswith("]") or maker is None:
        return None if fixed else out_of_place(program, write, tensor)
    listed = apply_patches(list_of_views(program, maker))
    edited = apply(program, listed)
    place = None if edited is None else edited.place(write)
    if edited is None or place is None:
        return None
    return merge(listed, out_of_place(edited.program, place, tensor))


def _callee(finding: Finding) -> str | None:
    """The called module as the failing line spells it; not known where torch called it."""
    return None if finding.variant == "function" else finding.facts["module"]
