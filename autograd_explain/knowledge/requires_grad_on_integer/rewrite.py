"""Floating point from the start, or a floating-point copy where the flag is set."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite import torch_at
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import call_behind, keyword_set, line_before
from autograd_explain.rewrite.transforms.uncut import code_of, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    torch = torch_at(program, cause.place)
    if cause.op == "dtype" and torch is not None:
        edits = keyword_set(program, cause.place, "dtype", f"{torch}.float32")
        if edits:
            yield Proposal("dtype", edits)
    for flag in finding.places.get("flag", ()):
        edits = _cast(program, flag)
        if edits:
            yield Proposal("cast", edits)


def _cast(program: Program, place: Place) -> tuple | None:  # type: ignore[type-arg]
    """`x.requires_grad = True` needs the name bound to the copy first."""
    node = node_at(program, place)
    if isinstance(node, ast.Call):
        return (
            None
            if any(k.arg == "requires_grad" for k in node.keywords)
            else call_behind(program, place, "float")
        )
    source = program.source_at(place)
    if source is None or node is None:
        return None
    name = code_of(program, place, node)
    stands_alone = any(
        (isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)
        and isinstance(s.value.func, ast.Attribute) and s.value.func.value is node)
        or (isinstance(s, ast.Assign) and getattr(s.targets[0], "value", None) is node)
        for s in ast.walk(source.tree)
    )  # fmt: skip
    if stands_alone:
        return line_before(program, place, f"{name} = {name}.float()\n")
    return call_behind(program, place, "float")
