"""Where code stands: the user's sources, their top levels and the functions inside them."""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from ...arguments import parameters
from ...program import Source, own_nodes
from ...program_index import index_of
from . import safe_lookup
from .expression import Scope
from .protocol import Slicing
from .reaching_definitions import FUNCTIONS, Body, all_bindings, head_of
from .syntax import declares, first_parameter


def top(slicer: Slicing, source: Source) -> Scope:
    """The top level of a cell or file, with the live names behind it."""
    values: Mapping[str, Any] = slicer.incident.namespace
    if source.cell is None:
        frames = (f.frame for f in slicer.incident.frames if f.filename == source.filename)
        values = next((f.f_globals for f in frames), index_of(slicer.program).names(source))
    return Scope(source, source.tree, values)


def scope_of(slicer: Slicing, source: Source, body: Body, receiver: Any = None) -> Scope:
    """The scope of a function reached without its call; the call is found by name."""
    if isinstance(body, ast.Module):
        return slicer.top(source)
    known = safe_lookup.MISSING if receiver is None else receiver
    values = {} if receiver is None else {first_parameter(body): receiver}
    frame = slicer.frame_scope(body)
    return frame if frame is not None else Scope(source, body, values, None, known)


def sources(slicer: Slicing, owner: Any = safe_lookup.MISSING) -> list[Source]:
    """Everything of the user's that may have run: cells newest first, then files, those of the
    owner's class among them."""
    kind = owner if isinstance(owner, type) else type(owner)
    files = {
        f.__code__.co_filename
        for c in (kind.__mro__ if owner is not safe_lookup.MISSING else ())
        for f in vars(c).values()
        if isinstance(f, types.FunctionType)
    }
    index = index_of(slicer.program)
    owned = [s for f in sorted(files) if (s := slicer.program.source(f)) is not None]
    cells = index.cells  # or the script
    others = dict.fromkeys(s for s in (*owned, *index.files) if s.cell is None and s not in cells)
    return [*reversed(cells), *others]


def sources_before(slicer: Slicing, source: Source, whole: bool) -> list[Source]:
    """What ran before a source, newest first; `whole`: at the end, so with the source itself."""
    if source.cell is None:
        return [source] if whole else []
    runs = index_of(slicer.program).runs
    if whole:
        # A function's globals are those of the moment of the call: the failing cell is last.
        return list(reversed(runs))
    earlier = [c for c in runs if c.cell is not None and c.cell < source.cell]
    return list(reversed(earlier))


def enclosing(slicer: Slicing, scope: Scope) -> Scope | None:
    """The function around a function."""
    if scope.outer is not None:
        return scope.outer
    index = slicer.index(scope.source)
    around = next((a for a in index.ancestors(scope.body) if isinstance(a, FUNCTIONS)), None)
    return None if around is None else Scope(scope.source, around)


def may_bind(source: Source, key: str) -> bool:
    """Whether a source may bind a key somewhere: most cells of a session do not."""
    head = head_of(key)
    return head in (source.bound if head == key else source.words)


def users_of_global(slicer: Slicing, key: str, *, binding: bool = False) -> list[Scope]:
    """The functions that see the name at the head of `key` as a global; `binding`: only those in
    sources that may bind it."""
    head = head_of(key)
    return [
        slicer.scope_of(source, body)
        for source in slicer.sources()
        if (may_bind(source, key) if binding else head in source.words)
        for body, names in source.functions
        if head in names
        and index_of(slicer.program).lives(body)
        and head not in parameters(body)
        and (not all_bindings(body, head) or declares(body, head, ast.Global))
    ]


def in_empty_loop(slicer: Slicing, scope: Scope, node: ast.AST) -> bool:
    """Whether it stands in a loop of a function that still runs elsewhere, and that has no value
    for a name that each round begins with: there was no round."""
    if scope.current is None or not isinstance(scope.body, FUNCTIONS):
        return False
    index = slicer.index(scope.source)
    around = {id(n) for n in (scope.current, *index.ancestors(scope.current))}
    inside = takewhile(lambda n: n is not scope.body, (node, *index.ancestors(node)))
    loops = [n for n in inside if isinstance(n, ast.For) and id(n) not in around]
    empty = any(_is_unbound(scope, loop) for loop in loops)
    return empty and not any(isinstance(n, _UNBINDS) for n in own_nodes(scope.body))


_UNBINDS = (ast.Delete, ast.Global, ast.Nonlocal)


def _is_unbound(scope: Scope, loop: ast.For) -> bool:
    names = (n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name))
    return any(name not in scope.values for name in names)
