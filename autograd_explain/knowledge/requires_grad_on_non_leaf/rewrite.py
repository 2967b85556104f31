"""Detach a value that should carry no gradient; ask for the gradient of one that should."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Edit, Finding, Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import statement_replaced
from autograd_explain.rewrite.transforms.uncut import apply_patches, code_of, node_at, replacement


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    node = node_at(program, None if cause is None else cause.place)
    if cause is None or cause.place is None or node is None:
        return
    name = code_of(program, cause.place, node)
    if cause.op == "want":
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return  # a value without a name: its gradient could not be read afterwards
        edits = statement_replaced(program, cause.place, f"{name}.retain_grad()\n")
        if edits:
            yield Proposal("retain_grad", edits)
        return
    edits = _detached(program, cause.place, node, name)
    if edits:
        yield Proposal("detach", edits)


def _detached(program: Program, place: Place, node: ast.expr, name: str) -> tuple[Edit, ...] | None:
    """`x.requires_grad = False` -> `x = x.detach()`; within an expression `x.detach()`."""
    source = program.source_at(place)
    if source is None:
        return None
    call = next((c for c in ast.walk(source.tree) if isinstance(c, ast.Call)
                 and isinstance(c.func, ast.Attribute) and c.func.value is node), None)  # fmt: skip
    alone = call is None or any(
        isinstance(s, ast.Expr) and s.value is call for s in ast.walk(source.tree)
    )
    if not alone and call is not None:
        span = source.span(call)
        where = Place(place.cell, place.file, place.line, place.source, place.function, span)
        return apply_patches(replacement(program, where, f"{name}.detach()"))
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    return statement_replaced(program, place, f"{name} = {name}.detach()\n")
