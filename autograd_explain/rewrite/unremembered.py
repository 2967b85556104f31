"""A value that is computed once and handed out again, computed at every use instead."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from ..model import Edit, Place
from ..program import Program
from .code import dotted, walk
from .draft import Draft
from .locate import Tree, statements_in, tree_at, tree_of

Edits = tuple[Edit, ...]
_MEMORY = frozenset({"cache_clear", "cache_info", "cache_parameters"})


def without_memory(program: Program, place: Place) -> Edits | None:
    """Take away the memory of the function whose decorator stands at `place`.

    `@cached_property` becomes `@property`.  None where the program uses the memory itself
    (`f.cache_clear()`).
    """
    tree = tree_at(program, place)
    found = None if tree is None else _decorated(tree, place)
    if tree is None or found is None or _memory_is_used(program):
        return None
    _, decorator = found
    draft = Draft(tree)
    node = decorator.decorator
    name = dotted(node.func if isinstance(node, cst.Call) else node) or ""
    if name.rpartition(".")[2] == "cached_property":
        draft.replace(node, cst.Name("property"))
    else:
        draft.replace(decorator, cst.RemoveFromParent())  # type: ignore[arg-type]
    return draft.edits()


def always_computed(program: Program, place: Place) -> Edits | None:
    """`if self.adj is None: self.adj = …` at `place` -> the assignment alone.

    `if key in cache: return cache[key]` goes as a whole.
    """
    tree = tree_at(program, place)
    guard = None if tree is None else tree.statement(place)
    if tree is None or not isinstance(guard, cst.If) or guard.orelse is not None:
        return None
    inside = statements_in(guard.body)
    draft = Draft(tree)
    if len(inside) == 1 and isinstance(inside[0], cst.Return):
        draft.remove(guard)
    elif tree.block_of(guard) is not None:
        draft.instead(guard, [Draft(tree).piece(s) for s in inside])
    return draft.edits()


def _decorated(tree: Tree, place: Place) -> tuple[cst.FunctionDef, cst.Decorator] | None:
    function = tree.statement(replace(place, span=None))
    if not isinstance(function, cst.FunctionDef):
        return None
    on_line = [d for d in function.decorators if tree.span(d).line == place.line]
    return (function, on_line[0]) if len(on_line) == 1 else None


def _memory_is_used(program: Program) -> bool:
    for source in program.cells:
        tree = tree_of(source)
        for node in walk(tree.module) if tree is not None else ():
            if isinstance(node, cst.Attribute) and node.attr.value in _MEMORY:
                return True
    return False
