"""no_grad instead of inference mode, or a clone where the tensor comes back to autograd."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Edit, Finding, Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite import clone_before_write
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.call_edits import call_behind, expression_replaced
from autograd_explain.rewrite.transforms.uncut import code_of, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause, use = finding.event(What.CAUSE), finding.places.get("use", ())
    if cause is not None and cause.place is not None and cause.op == "mode":
        edits = _no_grad(program, cause.place)
        if edits:
            yield Proposal("no_grad", edits)
    edits = _clone(finding, program, use[0]) if use else None
    if edits:
        yield Proposal("clone", edits)


def _no_grad(program: Program, place: Place) -> tuple[Edit, ...] | None:
    """`torch.inference_mode()` -> `torch.no_grad()`; not where a flag decides."""
    node = node_at(program, place)
    function = node.func if isinstance(node, ast.Call) else node
    if node is None or not isinstance(function, ast.Attribute):
        return None
    if isinstance(node, ast.Call) and (node.args or node.keywords):
        return None
    owner = code_of(program, place, function.value)
    return expression_replaced(program, place, f"{owner}.no_grad()")


def _clone(finding: Finding, program: Program, use: Place) -> tuple[Edit, ...] | None:
    if finding.variant == "written":
        return clone_before_write(program, use, finding.facts["tensor"])
    return call_behind(program, use, "clone") if finding.variant in ("", "counter") else None
