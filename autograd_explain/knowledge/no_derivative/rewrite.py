"""The argument that is not differentiated, detached."""

import ast
from dataclasses import replace

from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.transforms.call_edits import call_behind
from autograd_explain.rewrite.transforms.uncut import node_at

from .diagnose import Details


def _detached_argument(site: Site[Details]) -> Edits | None:
    program, place = site.program, site.place
    source, call = program.source_at(place), node_at(program, place)
    keywords = call.keywords if isinstance(call, ast.Call) else []
    given = [k.value for k in keywords if k.arg == site.details.argument]
    if source is None or len(given) != 1:
        return None
    return call_behind(program, replace(place, span=source.span(given[0])), "detach")


propose: Propose[Details] = by_table(
    Fix("detach_argument", _detached_argument, when=lambda d: d.argument != "", changes=True)
)
