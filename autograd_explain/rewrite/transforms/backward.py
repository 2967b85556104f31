"""Changes around a `backward()` call: keep its graph, or end a carried state's graph after it."""

from __future__ import annotations

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ..engine.cst_tools import (
    called_on,
    head,
    keyword,
    same,
    targets,
    unpacked,
)
from ..engine.tree import statement_at
from .call_edits import line_behind
from .uncut import apply_patches, keyword_added

_ENDED = {
    "tuple": "tuple(s.detach() for s in {x})",
    "list": "[s if s is None else s.detach() for s in {x}]",
}


def keep_graph(program: Program, place: Place | None) -> Edits | None:
    """`loss.backward()` -> `loss.backward(retain_graph=True)`; None where it says so already."""
    tree, found = statement_at(program, place)
    if found is None:
        return None
    calls = [n for n in head(found) if isinstance(n, cst.Call) and called_on(n, "backward", "grad")]
    if len(calls) != 1 or keyword(calls[0], "retain_graph") is not None:
        return None
    return apply_patches(keyword_added(program, tree.place(calls[0]), "retain_graph", "True"))


def detach_after(
    program: Program, place: Place | None, *exprs: str, kind: str = "tensor"
) -> Edits | None:
    """Lines `h = h.detach()` after the statement at `place`; `kind`: what each is."""
    line = "{x} = " + _ENDED.get(kind, "{x}.detach()")
    return line_behind(program, place, "\n".join(line.format(x=expr) for expr in exprs))


def bound_again(program: Program, place: Place, expr: str) -> Place | None:
    """Where the loop around `place` gives `expr` a new value after it, before the next round."""
    tree, start = statement_at(program, place)
    if start is None:
        return None
    loops = tree.loops(start)
    end = tree.span(start)
    for node in tree.statements if loops else ():
        later = tree.start(node) > (end.end_line, end.end_column) and tree.inside(node, loops[0])
        leaves = (leaf for t in targets(node) for leaf in unpacked(t)) if later else ()
        if any(same(tree, leaf, expr) for leaf in leaves):
            return tree.place(node)
    return None
