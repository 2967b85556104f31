"""Ask for the gradient where the tensor is made, or leave the frozen parameters out."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, Place, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import expression_replaced, keyword_set
from autograd_explain.rewrite.transforms.uncut import node_at

from .retain import requires_grad_after


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if cause is None or cause.place is None:
        return
    if cause.op == "filter":
        edits = expression_replaced(program, cause.place, "[p for p in {x} if p.requires_grad]")
        if edits:
            yield Proposal("leave_out", edits, Safety.CHANGES_MEANING, intended_difference=True)
    elif cause.op == "leaf":
        edits = _flag(program, cause.place)
        if edits:
            yield Proposal("flag", edits)


def _flag(program: Program, place: Place) -> tuple | None:  # type: ignore[type-arg]
    node = node_at(program, place)
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _TAKE_FLAG:
        return keyword_set(program, place, "requires_grad", "True")
    return requires_grad_after(program, place)


#: torch's constructors that take `requires_grad`.
_TAKE_FLAG = frozenset(
    "tensor zeros ones full empty rand randn linspace logspace arange eye normal zeros_like "
    "ones_like full_like rand_like randn_like empty_like".split()
)
