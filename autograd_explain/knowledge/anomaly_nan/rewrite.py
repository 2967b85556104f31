"""A limit for the input of an operation whose derivative is infinite at the edge."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import apply_patches, code_of, node_at, replacement

_EDGE_AT_ZERO = ("SqrtBackward0", "LogBackward0", "RsqrtBackward0", "Log2Backward0")


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    node = None if cause is None else node_at(program, cause.place)
    zero = finding.facts.get("value") == "0" and cause is not None
    if (
        cause is None
        or cause.op not in _EDGE_AT_ZERO
        or cause.place is None
        or not isinstance(node, ast.Call)
        or not zero
    ):
        return
    operand = _operand(node)
    if operand is None:
        return
    place = cause.place
    code = code_of(program, place, operand)
    atom = isinstance(operand, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    safe = f"{code if atom else f'({code})'}.clamp_min(1e-12)"
    whole = code_of(program, place, node)
    edits = apply_patches(replacement(program, place, whole.replace(code, safe, 1)))
    if edits:
        yield Proposal("clamp_input", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _operand(call: ast.Call) -> ast.expr | None:
    """`x` of `torch.sqrt(x)` and of `x.sqrt()`."""
    if call.args:
        return call.args[0] if ast.unparse(call.func).startswith("torch.") else None
    return call.func.value if isinstance(call.func, ast.Attribute) else None
