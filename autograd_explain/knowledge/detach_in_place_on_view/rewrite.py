"""A detached view under the same name."""

import ast
from collections.abc import Iterator

from autograd_explain.inspect.facts.statements import statement_at
from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import renamed_around, statement_replaced
from autograd_explain.rewrite.transforms.uncut import code_of, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    node = node_at(program, None if cause is None else cause.place)
    if cause is None or cause.place is None or node is None:
        return
    statement = statement_at(program, cause.place)
    call = statement.value if isinstance(statement, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    alone = isinstance(function, ast.Attribute) and function.value is node
    if not alone:
        edits = renamed_around(program, cause.place, "detach")
    elif isinstance(node, (ast.Name, ast.Attribute)):
        name = code_of(program, cause.place, node)
        edits = statement_replaced(program, cause.place, f"{name} = {name}.detach()\n")
    else:
        edits = None
    if edits:
        yield Proposal("out_of_place", edits)
