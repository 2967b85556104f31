"""A tensor in a tuple that is written: the tuple is made again, with a new tensor in its place."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import can_rebind
from autograd_explain.rewrite.analysis.inplace_writes import inplace_calls
from autograd_explain.rewrite.engine.cst_tools import make, repeatable
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import statement_at

_LONGEST = 4


def tuple_rebuilt(program: Program, place: Place, tuples: Mapping[str, int]) -> Edits | None:
    """`state[0].mul_(m)` -> `state = (state[0].mul(m), state[1])`.

    `tuples` are the expressions that are tuples, with their lengths.  None for an index that the
    text does not tell.
    """
    tree, statement = statement_at(program, place)
    if not isinstance(statement, cst.Expr):
        return None
    calls = inplace_calls(tree, statement)
    if len(calls) != 1 or calls[0].node is not statement.value:
        return None
    element = calls[0].target
    if not isinstance(element, cst.Subscript) or not repeatable(element):
        return None
    whole, at = element.value, _index(element)
    size = tuples.get(tree.code(whole), 0)
    held = isinstance(whole, cst.Subscript) and tree.code(whole.value) in tuples
    if held or at is None or not -size <= at < size or size > _LONGEST:
        return None
    if not can_rebind(tree, statement, whole):
        return None
    parts = [f"{{t}}[{i}]" if i != at % size else "{v}" for i in range(size)]
    text = f"{{t}} = ({', '.join(parts)}{',' * (size == 1)})"
    return Draft(tree).instead(statement, [make(text, t=whole, v=calls[0].value)]).edits()


def _index(element: cst.Subscript) -> int | None:
    try:
        return int(cst.Module(()).code_for_node(element).rpartition("[")[2].rstrip("]"))
    except ValueError:
        return None
