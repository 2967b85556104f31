"""The flag first, then what is computed."""

import ast
from dataclasses import replace

from autograd_explain.model import Place
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.edits import merge, then
from autograd_explain.rewrite.transforms.call_edits import line_before, statement_replaced
from autograd_explain.rewrite.transforms.move_statement import move_before
from autograd_explain.rewrite.transforms.training_step import remove_statement
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_patches,
    node_at,
    replacement,
)

from .diagnose import Details


def _flag_first(site: Site[Details]) -> Edits | None:
    details, program = site.details, site.program
    if details.callers:
        return _leaf_in_caller(site)
    if details.source == details.tensor or site.place is None or details.use is None:
        return move_before(program, site.place, details.use, checked=False)
    read = apply_patches(_copy_read(site, details.use))
    moved = (replace(place, span=None) for place in (site.place, details.use))
    return then(program, read, lambda p, *at: move_before(p, *at, checked=False), *moved)


def _copy_read(site: Site[Details], use: Place) -> list[Patch]:
    """`net(images)` -> `net(probe)`."""
    source, node = site.program.source_at(use), node_at(site.program, use)
    copied = site.details.source
    if source is None or node is None:
        return []
    named = [n for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute))]
    places = [replace(use, span=source.span(n)) for n in named if ast.unparse(n) == copied]
    return [p for at in places for p in replacement(site.program, at, site.details.tensor)]


def _leaf_in_caller(site: Site[Details]) -> Edits | None:
    """The leaf is made before the caller computes from it, and handed in as it is."""
    details, program, place = site.details, site.program, site.place
    flag = program.statement_at(place)
    target = ast.unparse(flag.targets[0]) if isinstance(flag, ast.Assign) else ""
    itself = details.source == details.tensor != target and not details.again
    ending = "{x}.requires_grad_()" if itself else "{x} = {x}.detach().requires_grad_()"
    uses = dict.fromkeys(details.callers)
    early = [line_before(program, use, ending.format(x=given)) for given, use in uses]
    if details.kept:
        return merge(*early)
    late = [remove_statement(program, copy) for copy in details.again]
    if place is not None and target in ("", details.source, f"{details.tensor}.requires_grad"):
        late.append(remove_statement(program, place))
    elif place is not None:
        late.append(statement_replaced(program, place, f"{target} = {details.source}"))
    return merge(*early, *late)


propose: Propose[Details] = by_table(Fix("flag_first", _flag_first))
