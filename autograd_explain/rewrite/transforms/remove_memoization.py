"""A value that is computed once and handed out again, computed at every use instead."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import libcst as cst

from ...model import Edits, Place
from ...program import Program
from ...program_index import index_of
from ..analysis.effects import effects
from ..engine.cst_tools import called_name, dotted, keyword, walk
from ..engine.draft import Draft
from ..engine.imports import Imports
from ..engine.proposal import Proposal, differing
from ..engine.tree import Statement, statement_at, statements_in
from .training_step import makes_layer
from .uncut import apply_patches, keyword_added

_MEMORY = frozenset({"cache_clear", "cache_info", "cache_parameters"})


def computed_anew(program: Program, place: Place | None) -> Edits | None:
    """What the decorator or the guard at `place` remembers is computed at every use."""
    if place is None:
        return None
    return without_memory(program, place) or always_computed(program, place)


def without_memory(program: Program, place: Place) -> Edits | None:
    """Take away the memory of the function whose decorator stands at `place`.

    `@cached_property` becomes `@property`.  None where the program uses the memory itself
    (`f.cache_clear()`, `del graph.adj`), and where another call would give another value.
    """
    tree, function = statement_at(program, replace(place, span=None))
    attributes = index_of(program).nodes(ast.Attribute)
    if not isinstance(function, cst.FunctionDef) or any(n.attr in _MEMORY for _, n in attributes):
        return None
    on_line = [d for d in function.decorators if tree.span(d).line == place.line]
    if len(on_line) != 1 or differs_each_time(tree.imports, function):
        return None
    node = on_line[0].decorator
    name = dotted(node.func if isinstance(node, cst.Call) else node) or ""
    if name.rpartition(".")[2] != "cached_property":
        return Draft(tree).drop(on_line[0]).edits()
    if _is_stored(program, function.name.value):
        return None
    return Draft(tree).replace(node, cst.Name("property")).edits()


def always_computed(program: Program, place: Place) -> Edits | None:
    """`if self.adj is None: self.adj = …` at `place` -> the assignment alone.

    `if key in cache: return cache[key]` goes as a whole.  None where computing it twice is not
    the same as once: it builds on its own old value, counts, or draws random numbers.
    """
    tree, guard = statement_at(program, place)
    if not isinstance(guard, cst.If) or guard.orelse is not None:
        return None
    inside = statements_in(guard.body)
    returns = len(inside) == 1 and isinstance(inside[0], cst.Return)
    # What an early return skipped is the rest of the function.
    computed = tree.scope_of(guard) if returns else guard
    if differs_each_time(tree.imports, computed) or _builds_on_before(inside):
        return None
    draft = Draft(tree)
    return (draft.remove(guard) if returns else draft.opened(guard)).edits()


def not_kept(program: Program, options: Sequence[tuple[Place, str]]) -> Iterator[Proposal]:
    """`GCNConv(4, 8, cached=True)` -> the same with False, at each of these calls."""
    patches = (keyword_added(program, place, name, "False") for place, name in options)
    edits = apply_patches(patch for group in patches for patch in group)
    code = f"{options[0][1]}=False" if options else ""
    return differing("repair_turn_flag", edits, code=code)


def _builds_on_before(statements: Iterable[Statement]) -> bool:
    """Whether one of them changes what was there before them all: `n += 1`, `log.append(x)`; not
    `y = y / y[-1]` where a statement before it gave `y` its value."""
    given: set[str] = set()
    for statement in statements:
        own = effects(statement)
        if (_builds_on(statement) & own.writes) - given:
            return True
        if isinstance(statement, (cst.Assign, cst.AnnAssign)):
            given |= own.writes
    return False


def _builds_on(statement: Statement) -> set[str]:
    """What a statement reads to change it; a call that stands alone may change what it is given."""
    own = effects(statement)
    if isinstance(statement, (cst.Assign, cst.AnnAssign)):
        # The target of `cache[key] = …` is read as well.
        return set() if statement.value is None else effects(statement.value).reads
    return own.writes if isinstance(statement, cst.Expr) else own.reads


def differs_each_time(imports: Imports, node: cst.CSTNode) -> bool:
    """Whether random numbers are drawn in there, or parameters made: these are to stay the same."""
    return any(isinstance(n, cst.Call) and _is_new_each_time(imports, n) for n in walk(node))


def _is_new_each_time(imports: Imports, call: cst.Call) -> bool:
    last = called_name(call)
    return (
        makes_layer(imports, call)
        or last.startswith(("rand", "bernoulli", "multinomial"))
        or last in ("normal", "normal_", "Parameter", "dropout", "sample", "rsample")
        or last == "requires_grad_"
        or keyword(call, "requires_grad") is not None
    )


def _is_stored(program: Program, name: str) -> bool:
    """Whether the program sets or deletes an attribute, which a property does not allow."""
    index = index_of(program)
    stored = (n.attr for _, n in index.nodes(ast.Attribute) if not isinstance(n.ctx, ast.Load))
    texts = (n.value for _, n in index.nodes(ast.Constant))  # `vars(graph).pop("adj")`
    return name in stored or name in texts
