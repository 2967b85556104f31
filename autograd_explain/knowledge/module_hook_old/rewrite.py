"""`register_full_backward_hook` instead of the old method."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograd_explain.model import Finding, Safety, Span, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    node = None if cause is None else node_at(program, cause.place)
    source = None if cause is None or cause.place is None else program.source_at(cause.place)
    if source is None or not isinstance(node, ast.Call):
        return
    span = _name(source.span(node.func), ast.unparse(node.func).rpartition(".")[2])
    if span is not None:
        new = ast.unparse(node.func).rpartition(".")[2].replace("backward", "full_backward")
        edits = apply_patches([Patch(source, span, new)])
        if edits:
            yield Proposal("full_hook", edits, Safety.CHANGES_MEANING, intended_difference=True)


def _name(span: Span | None, name: str) -> Span | None:
    """The range of the last name of a dotted one."""
    if span is None:
        return None
    return replace(span, line=span.end_line, column=span.end_column - len(name))
