"""Say that only the number is wanted."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import call_behind, expression_replaced
from autograd_explain.rewrite.transforms.uncut import code_of, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause, given = finding.event(What.CAUSE), finding.places.get("given", ())
    if cause is None or cause.place is None or not given:
        return
    node = node_at(program, given[0])
    if cause.op == "item" and node is not None:
        code = code_of(program, given[0], node)
        plain = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
        edits = expression_replaced(
            program, cause.place, f"{code if plain else f'({code})'}.item()"
        )
        if edits:
            yield Proposal("item", edits)
    edits = call_behind(program, given[0], "detach")
    if edits:
        yield Proposal("detach", edits)
