"""Parameters in float32; autocast computes in half precision."""

from collections.abc import Iterator

from autograd_explain.inspect.facts.statements import statement_at
from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite import remove_statement
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import call_removed
from autograd_explain.rewrite.transforms.uncut import node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None or cause.op != "autocast":
        return
    statement = statement_at(program, cause.place)
    alone = getattr(statement, "value", None) is node_at(program, cause.place)
    if alone and type(statement).__name__ == "Expr":
        edits = remove_statement(program, cause.place)
    else:
        edits = call_removed(program, cause.place)
    if edits:
        yield Proposal("float32", edits, Safety.CHANGES_MEANING, intended_difference=True)
