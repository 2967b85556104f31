"""Ascent by the option that is made for it."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograd_explain.model import Finding, What
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import (
    apply_patches,
    keyword_added,
    node_at,
    replacement,
)


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    cause = finding.event(What.CAUSE)
    node = node_at(program, None if cause is None else cause.place)
    if cause is None or cause.place is None or cause.op is None or not isinstance(node, ast.Call):
        return
    source = program.source_at(cause.place)
    given = next((k.value for k in node.keywords if k.arg == "lr"), None)
    given = given or (node.args[1] if len(node.args) > 1 else None)
    if source is None or given is None:
        return
    rate = replace(cause.place, span=source.span(given))
    flip = replacement(program, rate, finding.facts["given"].lstrip("- "))
    edits = apply_patches([*flip, *keyword_added(program, cause.place, "maximize", "True")])
    if edits:
        yield Proposal("maximize", edits)
