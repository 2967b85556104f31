"""The expressions at which a failure surfaced, and the live scopes it passed through."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...incident import Incident, LiveFrame
from ...program import Program, Source
from ...program_index import functions_of
from . import safe_lookup
from .expression import ExprAt, Scope
from .protocol import Slicing
from .reaching_definitions import FUNCTIONS, Body

#: Library frames that hand the call on with its arguments unchanged.
_HANDS_ON = ("torch/nn/modules/module.py", "torch/utils/_contextlib.py", "torch/_tensor.py")


def failing_spots(slicer: Slicing) -> list[ExprAt]:
    """For each of the user's frames, innermost first, the expression it was evaluating.

    The whole statement's expressions where the interpreter does not say which one it was.
    """
    return [spot for spot, _ in reversed(slicer.frame_chain)]


def frame_scopes(slicer: Slicing) -> Iterator[tuple[int, Scope]]:
    """Live scopes by the identity of their definition and of the call that entered them."""
    for _, scope in slicer.frame_chain:
        yield id(scope.body), scope
        if scope.call is not None:
            yield id(scope.call.node), scope


def frame_chain(program: Program, incident: Incident) -> Iterator[tuple[ExprAt, Scope]]:
    """The user's frames outermost first, each with the expression it stood at."""
    before: ExprAt | None = None
    around: Scope | None = None
    direct = True
    for frame in incident.frames:
        source = program.source_of(frame.code)
        if source is None:
            direct = direct and frame.filename.replace("\\", "/").endswith(_HANDS_ON)
            continue
        body, node = _body(source, frame), _node(source, frame)
        if body is None or node is None:
            before, direct = None, True
            continue
        if around is not None and around.body is body and frame.code.co_name in _COMPREHENSIONS:
            # A frame of its own up to 3.11 (a generator's, always), and no call of the function.
            scope = replace(around, values={**around.values, **_values(frame)}, current=node)
        else:
            call = before if direct and _entered(before) else None
            scope = Scope(source, body, _values(frame), call, _receiver(body, frame), node)
        before, around, direct = ExprAt(scope, node), scope, True
        yield before, scope


def _entered(spot: ExprAt | None) -> bool:
    return spot is not None and isinstance(spot.node, ast.Call)


def _values(frame: LiveFrame) -> dict[str, Any]:
    return dict(frame.frame.f_locals)


def _receiver(body: Body, frame: LiveFrame) -> Any:
    if not isinstance(body, FUNCTIONS):
        return safe_lookup.MISSING
    return frame.frame.f_locals.get("self", safe_lookup.MISSING)


def _body(source: Source, frame: LiveFrame) -> Body | None:
    code = frame.code
    if code.co_name in ("<module>", "async-def-wrapper"):
        return source.tree
    if code.co_name.startswith("<cell line"):  # IPython 8 names a cell's code so
        return source.tree
    if code.co_name in _COMPREHENSIONS:
        kind, line = _COMPREHENSIONS[code.co_name], code.co_firstlineno
        inner = (n for n in source.nodes if isinstance(n, kind) and n.lineno == line)
        around = (n for node in inner for n in source.around(node) if isinstance(n, FUNCTIONS))
        return next(around, source.tree)
    return next(iter(functions_of(source.tree, code)), None)


_COMPREHENSIONS: Mapping[str, type[ast.expr]] = {
    "<listcomp>": ast.ListComp,
    "<setcomp>": ast.SetComp,
    "<dictcomp>": ast.DictComp,
    "<genexpr>": ast.GeneratorExp,
}


def _node(source: Source, frame: LiveFrame) -> ast.expr | None:
    """The expression a frame was evaluating, as a node of our own tree."""
    found = expression_at(source, frame)
    if found is not None:
        return found
    statement = source.statement_at(frame.line)
    return None if statement is None else _main_expression(statement)


def expression_at(source: Source, frame: LiveFrame) -> ast.expr | None:
    """The expression a frame was evaluating, where Python or `executing` can tell."""
    where = _range_of_instruction(frame) or _range_from_executing(frame)
    if where is None:
        return None
    fitting = [
        node
        for node in source.nodes
        if isinstance(node, ast.expr)
        and (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) == where
    ]
    # `(x)` and `x` share a range; calls and attribute reads are what can fail.
    fitting.sort(key=lambda n: not isinstance(n, (ast.Call, ast.Attribute)))
    return fitting[0] if fitting else None


Range = tuple[int, int | None, int, int | None]


def _range_of_instruction(frame: LiveFrame) -> Range | None:
    """What Python itself (3.11 and later) says of the instruction the traceback names."""
    positions = getattr(frame.frame.f_code, "co_positions", None)
    if positions is None or frame.lasti < 0:
        return None
    found = next(itertools.islice(positions(), frame.lasti // 2, None), None)
    if found is None or None in found:
        return None
    line, end_line, column, end_column = found
    return line, end_line, column, end_column


def _range_from_executing(frame: LiveFrame) -> Range | None:
    from executing import Source

    if frame.frame.f_lasti < 0:  # not begun, or a stand-in: `executing` would search for ever
        return None
    if frame.frame.f_lineno != frame.line:
        # An exception handler or a `with` ran after it: the instruction is no longer that one.
        return None
    try:
        node = Source.executing(frame.frame).node
    except Exception:
        return None
    if not isinstance(node, ast.expr):
        return None
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _main_expression(statement: ast.stmt) -> ast.expr | None:
    value = getattr(statement, "value", None)
    if isinstance(value, ast.expr):
        return value
    return next((c for c in ast.iter_child_nodes(statement) if isinstance(c, ast.expr)), None)
