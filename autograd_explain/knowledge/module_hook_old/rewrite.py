"""`register_full_backward_hook` instead of the old method."""

import ast
from dataclasses import replace

from autograd_explain.model import Span
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, node_at


def _full_hook(site: Site[object]) -> Edits | None:
    source, node = site.program.source_at(site.place), node_at(site.program, site.place)
    if source is None or not isinstance(node, ast.Call):
        return None
    old = ast.unparse(node.func).rpartition(".")[2]
    span = _name(source.span(node.func), old)
    new = old.replace("backward", "full_backward")
    return None if span is None else apply_patches([Patch(source, span, new)])


def _name(span: Span | None, name: str) -> Span | None:
    """The range of the last name of a dotted one."""
    if span is None:
        return None
    return replace(span, line=span.end_line, column=span.end_column - len(name))


propose: Propose[object] = by_table(Fix("full_hook", _full_hook, changes=True))
