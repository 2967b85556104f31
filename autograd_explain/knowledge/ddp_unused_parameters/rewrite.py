"""`find_unused_parameters=True`, in place of `static_graph=True` where that was promised."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite import Proposal
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, keyword_added, node_at


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    call = None if cause is None else node_at(program, cause.place)
    if cause is None or cause.place is None or not isinstance(call, ast.Call):
        return
    source = program.source_at(cause.place)
    given = {k.arg: k for k in call.keywords}
    static = given.get("static_graph")
    if source is not None and static is not None and "find_unused_parameters" not in given:
        span = source.span(static)
        if span is not None:
            edits = apply_patches([Patch(source, span, "find_unused_parameters=True")])
            if edits:
                yield Proposal("no_static_graph", edits)
    elif "find_unused_parameters" not in given:
        patches = keyword_added(program, cause.place, "find_unused_parameters", "True")
        edits = apply_patches(patches)
        if edits:
            yield Proposal("find_unused", edits)
