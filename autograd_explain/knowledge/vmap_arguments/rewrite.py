"""`None` in `in_dims` for the arguments that are no tensors."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import apply_patches, keyword_added, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    call = None if cause is None else node_at(program, cause.place)
    if finding.variant != "plain" or cause is None or cause.place is None:
        return
    source = program.source_at(cause.place)
    made = call.func if isinstance(call, ast.Call) else None
    if source is None or not isinstance(call, ast.Call) or not isinstance(made, ast.Call):
        return
    if len(made.args) != 1 or made.keywords or call.keywords:
        return
    plain = [isinstance(a, ast.Constant) for a in call.args]
    if not any(plain) or all(plain):
        return
    dims = ", ".join("None" if p else "0" for p in plain)
    place = source.place(made.lineno, cause.place.function, made)
    edits = apply_patches(keyword_added(program, place, "in_dims", f"({dims})"))
    if edits:
        yield Proposal("share", edits)
