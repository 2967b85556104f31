"""Store the value without its graph, drop it before copying, or copy the values themselves."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograd_explain.model import Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.calls import call_behind, line_before
from autograd_explain.rewrite.proposal import Proposal
from autograd_explain.rewrite.uncut import apply_patches, node_at, replacement


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause, copied = finding.event(What.CAUSE), finding.places.get("copied", ())
    if cause is None or cause.place is None:
        return
    if cause.op == "detach":
        edits = call_behind(program, cause.place, "detach")
        if edits:
            yield Proposal("detach", edits)
    name = finding.facts.get("tensor", "")
    if cause.op in ("detach", "clear") and copied:
        dropped = name.isascii() and "." in name and not name.endswith("]")
        edits = line_before(program, copied[0], f"{name} = None\n") if dropped else None
        if edits:
            yield Proposal("drop", edits)
    if cause.op == "clone" and copied:
        edits = _values(program, copied[0])
        if edits:
            yield Proposal("values", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _values(program: Program, place: Place) -> tuple | None:  # type: ignore[type-arg]
    """`copy.deepcopy(h)` -> `h.detach().clone()`"""
    source, node = program.source_at(place), node_at(program, place)
    if source is None or node is None:
        return None
    for call in ast.walk(source.tree):
        if isinstance(call, ast.Call) and call.args[:1] == [node]:
            code = ast.get_source_segment(source.python, node) or ast.unparse(node)
            atom = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
            text = f"{code if atom else f'({code})'}.detach().clone()"
            where = replace(place, span=source.span(call))
            return apply_patches(replacement(program, where, text))
    return None
