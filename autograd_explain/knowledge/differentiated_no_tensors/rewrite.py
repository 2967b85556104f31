"""The parameters themselves."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import expression_replaced, renamed
from autograd_explain.rewrite.transforms.uncut import code_of, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    node, edits = node_at(program, cause.place), None
    if cause.op == "parameters":
        edits = renamed(program, cause.place, "{owner}.parameters")
    elif cause.op == "inner" and isinstance(node, (ast.List, ast.Tuple)):
        inner = code_of(program, cause.place, node.elts[0])
        edits = expression_replaced(program, cause.place, f"list({inner})")
    if edits:
        yield Proposal("parameters", edits)
