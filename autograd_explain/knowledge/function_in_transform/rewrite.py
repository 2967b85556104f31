"""`generate_vmap_rule = True` at the top of the class."""

import ast

from autograd_explain.model import Span
from autograd_explain.program import Source
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches

from .diagnose import Details


def _generated(site: Site[Details]) -> Edits | None:
    found = index_of(site.program).classes(site.details.function)[:1]
    return apply_patches(_rule(source, node) for source, node in found)


def _rule(source: Source, node: ast.ClassDef) -> Patch:
    """Before the first statement of the body, with a blank line behind."""
    first = node.body[0]
    decorators = getattr(first, "decorator_list", [])
    line = min([first.lineno, *(d.lineno for d in decorators)]) + source.offset
    point = Span(line, first.col_offset, line, first.col_offset)
    return Patch(source, point, "generate_vmap_rule = True\n\n" + " " * first.col_offset)


propose: Propose[Details] = by_table(Fix("generate_rule", _generated, when=lambda d: d.batching))
