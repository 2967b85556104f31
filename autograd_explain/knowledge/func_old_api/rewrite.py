"""The present name of a function of `functorch`."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, Place, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.imports import imports_at
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    if finding.variant != "moved" or cause is None or cause.place is None:
        return
    edits = apply_patches(_renamed(program, cause.place, finding.facts.get("replacement", "")))
    if edits:
        yield Proposal("new_name", edits)


def _renamed(program: Program, place: Place, new: str) -> list[Patch]:
    """`functorch.vmap(f)` -> `torch.vmap(f)`, where torch is imported under that name."""
    node, source = node_at(program, place), program.source_at(place)
    call = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Call) else node
    if not isinstance(call, ast.Call) or source is None or not new.startswith("torch."):
        return []
    span = source.span(call.func)
    old = ast.unparse(call.func)
    if span is None or not old.startswith("functorch."):
        return []
    return [Patch(source, span, new)] if imports_at(program, place).local("torch") else []
