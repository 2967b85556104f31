"""The argument that is not differentiated, detached."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, Safety, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, code_of, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    call = None if cause is None else node_at(program, cause.place)
    if finding.variant != "argument" or cause is None or cause.place is None:
        return
    source = program.source_at(cause.place)
    wanted = finding.facts.get("argument", "")
    given = [k.value for k in getattr(call, "keywords", ()) if k.arg == wanted]
    if source is None or not isinstance(call, ast.Call) or len(given) != 1:
        return
    span = source.span(given[0])
    code = code_of(program, cause.place, given[0])
    atom = isinstance(given[0], (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    if span is not None:
        new = f"{code if atom else f'({code})'}.detach()"
        edits = apply_patches([Patch(source, span, new)])
        if edits:
            yield Proposal(
                "detach_argument", edits, Safety.CHANGES_MEANING, intended_difference=True
            )
