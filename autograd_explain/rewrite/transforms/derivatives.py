"""Derivatives that are differentiated again, recorded; and a graph kept for a further backward."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ...arguments import bind, given_by
from ...forward_flow import flows_out
from ...model import Edits, Place
from ...program import Program, called_name, own_nodes
from ..engine.cst_tools import called_on, calls_in, keyword
from ..engine.imports import Imports
from ..engine.tree import statement_at
from .uncut import Patch, apply_all, apply_patches, keyword_added

#: What calls that take derivatives are given by position (torch/autograd, autograd/functional.py).
TAKES: dict[str, tuple[str, ...]] = {
    "backward": ("gradient", "retain_graph", "create_graph"),
    "grad": ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph"),
    **dict.fromkeys(("jacobian", "hessian"), ("func", "inputs", "create_graph")),
    **dict.fromkeys(("vjp", "jvp", "vhp", "hvp"), ("func", "inputs", "v", "create_graph")),
}


def with_create_graph(program: Program, places: Iterable[Place | None]) -> Edits | None:
    """`create_graph=True` in every call at the places, and no `retain_graph=False`."""
    calls = list(places)
    found = [_with_flag(program, place, "create_graph") for place in calls]
    for place in calls if all(found) else ():
        call = program.expression_at(place)
        takes = TAKES.get(called_name(call), ())
        if isinstance(call, ast.Call) and "retain_graph" in bind(takes, given_by(call)):
            found.append(_with_flag(program, place, "retain_graph"))
    return apply_all(found)


def _with_flag(program: Program, place: Place | None, flag: str) -> list[Patch]:
    takes = TAKES.get(called_name(program.expression_at(place)), ())
    position = takes.index(flag) if flag in takes else None
    return keyword_added(program, place, flag, "True", position=position)


def derivatives_from(program: Program, place: Place) -> Iterator[Place]:
    """The call of `torch.autograd.grad`, `jacobian` or their like at a place, and those below it in
    the same function whose derivatives are differentiated, or handed back, too: each would lack its
    graph in turn."""
    yield place
    source, first = program.source_at(place), program.expression_at(place)
    if source is None or first is None:
        return
    scope = source.function_at(place) or source.tree
    imports = Imports.of(program, source)
    for call in (n for n in own_nodes(scope) if isinstance(n, ast.Call)):
        later = (call.lineno, call.col_offset) > (first.lineno, first.col_offset)
        plain = not any(k.arg == "create_graph" for k in call.keywords)
        if later and plain and _takes(imports, call) and flows_out(scope, call):
            yield source.place(call.lineno, place.function, call)


def _takes(imports: Imports, call: ast.Call) -> bool:
    module, _, name = imports.full(ast.unparse(call.func)).rpartition(".")
    return name == "grad" if module == "torch.autograd" else module == "torch.autograd.functional"


def keep_graph(program: Program, place: Place | None) -> Edits | None:
    """`loss.backward()` -> `loss.backward(retain_graph=True)`; None where it says so already."""
    tree, found = statement_at(program, place)
    calls = [call for call in calls_in(found) if called_on(call, "backward", "grad")]
    if len(calls) != 1 or keyword(calls[0], "retain_graph") is not None:
        return None
    return apply_patches(keyword_added(program, tree.place(calls[0]), "retain_graph", "True"))
