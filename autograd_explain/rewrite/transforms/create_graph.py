"""Graphs kept: derivatives that are recorded, and a graph for a further backward."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import libcst as cst

from ...forward_flow import flows_out
from ...model import Edits, Place
from ...program import Program, called_name, own_nodes
from ..engine.cst_tools import called_on, head, keyword
from ..engine.imports import Imports
from ..engine.tree import statement_at
from .uncut import apply_patches, keyword_added, node_at


def with_create_graph(program: Program, places: Iterable[Place | None]) -> Edits | None:
    """`create_graph=True` in every call at the places, and no `retain_graph=False`."""
    calls = list(places)
    found = [keyword_added(program, place, "create_graph", "True") for place in calls]
    for place in calls if all(found) else ():
        call = node_at(program, place)
        if any(k.arg == "retain_graph" for k in getattr(call, "keywords", ())):
            found.append(keyword_added(program, place, "retain_graph", "True"))
    return apply_patches(p for patches in found for p in patches) if all(found) else None


def derivatives_from(program: Program, place: Place) -> Iterator[Place]:
    """The call of `torch.autograd.grad` at a place, and those below it in the same function whose
    derivatives are differentiated, or handed back, too: each would lack its graph in turn."""
    yield place
    source, first = program.source_at(place), node_at(program, place)
    if source is None or first is None:
        return
    scope = source.function_at(place) or source.tree
    imports = Imports.of(program, source)
    for call in (n for n in own_nodes(scope) if isinstance(n, ast.Call)):
        later = (call.lineno, call.col_offset) > (first.lineno, first.col_offset)
        plain = not any(k.arg == "create_graph" for k in call.keywords)
        taken = called_name(call) == "grad" and imports.full(ast.unparse(call.func))
        if later and plain and taken == "torch.autograd.grad" and flows_out(scope, call):
            yield source.place(call.lineno, place.function, call)


def keep_graph(program: Program, place: Place | None) -> Edits | None:
    """`loss.backward()` -> `loss.backward(retain_graph=True)`; None where it says so already."""
    tree, found = statement_at(program, place)
    if found is None:
        return None
    calls = [n for n in head(found) if isinstance(n, cst.Call) and called_on(n, "backward", "grad")]
    if len(calls) != 1 or keyword(calls[0], "retain_graph") is not None:
        return None
    return apply_patches(keyword_added(program, tree.place(calls[0]), "retain_graph", "True"))
