"""`generate_vmap_rule = True` at the top of the class."""

import ast
from collections.abc import Iterator

from autograd_explain.model import Finding, Span
from autograd_explain.program import Program, Source
from autograd_explain.program_index import index_of
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches


def propose(finding: Finding, program: Program) -> Iterator[Proposal]:
    if finding.variant != "batching":
        return
    name = finding.facts.get("function", "")
    for source, node in index_of(program).classes(name)[:1]:
        edits = apply_patches([_rule(source, node)])
        if edits:
            yield Proposal("generate_rule", edits)


def _rule(source: Source, node: ast.ClassDef) -> Patch:
    """Before the first statement of the body, with a blank line behind."""
    first = node.body[0]
    decorators = getattr(first, "decorator_list", [])
    line = min([first.lineno, *(d.lineno for d in decorators)]) + source.offset
    point = Span(line, first.col_offset, line, first.col_offset)
    if decorators:  # an `@` stands before the decorator's own column
        point = Span(line, first.col_offset, line, first.col_offset)
    return Patch(source, point, "generate_vmap_rule = True\n\n" + " " * first.col_offset)
