"""What the innermost of the user's functions calls a tensor that its callers call otherwise."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise

from autograd_explain.arguments import bound_arguments
from autograd_explain.model import Place
from autograd_explain.program import Program, called_name

_RUN_BY_CALL = ("forward", "__call__")


def handed_down(program: Program, names: Sequence[str], path: Sequence[Place]) -> str:
    """`picture` of `show(filled)` and `def show(picture)`, for the names at the first line of
    `path`, each of whose lines calls the function in which the next one stands; "" where that
    cannot be told."""
    known = set(names)
    for line, inner in pairwise(path):
        known = {parameter for parameter, given in _bound(program, line, inner) if given in known}
    return next(iter(known)) if len(path) > 1 and len(known) == 1 else ""


def _bound(program: Program, line: Place, inner: Place) -> Iterator[tuple[str, str]]:
    """The parameters of the function around `inner` with what the call in `line` gives for them."""
    source, outer = program.source_at(inner), program.statement_at(line)
    at = program.statement_at(inner)
    function = None if source is None or at is None else source.function_around(at)
    if function is None or isinstance(function, ast.Lambda) or outer is None:
        return
    name = function.name
    calls = [n for n in ast.walk(outer) if isinstance(n, ast.Call)]
    own = [c for c in calls if name in _RUN_BY_CALL or called_name(c) == name]
    for call in own if len(own) == 1 else ():
        for parameter, given in bound_arguments(function, call).items():
            yield parameter, ast.unparse(given)
