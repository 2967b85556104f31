"""What cut the graph taken away, or the gradient asked for where the tensor is made."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import (
    apply_patches,
    keyword_added,
    node_at,
    without_cut,
)

_CONSTRUCTORS = frozenset(
    "tensor zeros ones rand randn full empty eye linspace arange normal".split()
)


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    node = node_at(program, cause.place)
    if finding.variant == "cut":
        edits = apply_patches(without_cut(program, cause.place))
        if edits:
            yield Proposal("uncut", edits)
    elif finding.variant == "made" and isinstance(node, ast.Call):
        if ast.unparse(node.func).rpartition(".")[2] in _CONSTRUCTORS:
            edits = apply_patches(keyword_added(program, cause.place, "requires_grad", "True"))
            if edits:
                yield Proposal("requires_grad", edits)
