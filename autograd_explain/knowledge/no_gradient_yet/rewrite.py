"""Reset to None instead of zeros; read the gradient before it is cleared."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite import move_after
from autograd_explain.rewrite.calls import statement_replaced
from autograd_explain.rewrite.proposal import Proposal
from autograd_explain.rewrite.uncut import code_of, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause, read = finding.event(What.CAUSE), finding.places.get("read", ())
    if cause is None or cause.place is None or not read:
        return
    node = node_at(program, read[0])
    if cause.op == "zeroed" and isinstance(node, (ast.Name, ast.Attribute)):
        name = code_of(program, read[0], node)
        edits = statement_replaced(program, cause.place, f"{name}.grad = None\n")
        if edits:
            yield Proposal("reset", edits)
    elif cause.op == "cleared":
        edits = move_after(program, cause.place, read[0])
        if edits:
            yield Proposal("clear_later", edits)
