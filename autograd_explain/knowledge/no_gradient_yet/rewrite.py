"""Reset to None instead of zeros; read the gradient before it is cleared."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite import move_after
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import statement_replaced
from autograd_explain.rewrite.transforms.uncut import code_of, node_at

from .own_gradient import parameters_themselves, read_of_leaf, undetached


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
    elif cause.op == "alias":
        yield from _of_alias(finding, program, cause.place, read[0])


def _of_alias(finding: Finding, program: Program, maker: Place, read: Place) -> Iterator[Proposal]:
    leaf = next(iter(finding.places.get("leaf", ())), None)
    for fix, edits in (
        ("parameters", parameters_themselves(program, maker)),
        ("read_leaf", read_of_leaf(program, read, leaf)),
        ("undetached", undetached(program, read, maker)),
    ):
        if edits:
            yield Proposal(fix, edits)
            return
