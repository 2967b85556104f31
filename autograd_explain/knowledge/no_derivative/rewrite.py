"""The argument that is not differentiated, detached."""

import ast

from autograd_explain.rewrite.engine.fixes import Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, code_of, node_at

from .diagnose import Details


def _detached_argument(site: Site[Details]) -> Edits | None:
    program, place = site.program, site.place
    source, call = program.source_at(place), node_at(program, place)
    keywords = call.keywords if isinstance(call, ast.Call) else []
    given = [k.value for k in keywords if k.arg == site.details.argument]
    span = source.span(given[0]) if source is not None and len(given) == 1 else None
    if source is None or span is None:
        return None
    code = code_of(program, place, given[0])
    atom = isinstance(given[0], (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    return apply_patches([Patch(source, span, f"{code if atom else f'({code})'}.detach()")])


propose: Propose[Details] = by_table(
    Fix("detach_argument", _detached_argument, when=lambda d: d.argument != "", changes=True)
)
