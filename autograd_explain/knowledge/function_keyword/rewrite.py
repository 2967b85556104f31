"""The right name for an argument of `apply`, where only one parameter is left for it."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    call = None if cause is None else node_at(program, cause.place)
    if cause is None or cause.place is None or not isinstance(call, ast.Call):
        return
    inputs = finding.facts.get("inputs", "").split(", ")
    source = program.source_at(cause.place)
    given = {k.arg: k for k in call.keywords}
    if source is None or any(isinstance(a, ast.Starred) for a in call.args):
        return
    left = [name for name in inputs[len(call.args) :] if name not in given]
    wrong = [k for name, k in given.items() if name not in inputs]
    if len(left) != 1 or len(wrong) != 1 or wrong[0].arg is None:
        return
    span = source.span(wrong[0])
    if span is None:
        return
    name = replace(span, end_line=span.line, end_column=span.column + len(wrong[0].arg))
    edits = apply_patches([Patch(source, name, left[0])])
    if edits:
        yield Proposal("parameter_name", edits)
