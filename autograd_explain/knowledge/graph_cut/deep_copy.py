"""`net` -> `copy.deepcopy(net)` where one object got a second name."""

from __future__ import annotations

import ast

from autograd_explain.model import Place, Span
from autograd_explain.program import Program, Source
from autograd_explain.program_index import index_of
from autograd_explain.rewrite.engine.imports import imports_at
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_patches,
    code_of,
    node_at,
    replacement,
)


def deep_copied(program: Program, place: Place | None) -> Edits | None:
    """A copy of the expression at the place; `import copy` comes along where it is missing."""
    node = node_at(program, place)
    source = None if place is None else program.source_at(place)
    if node is None or place is None or source is None:
        return None
    known = imports_at(program, place).local("copy.deepcopy")
    patches = [] if known else _imported(program, source)
    code = f"{known or 'copy.deepcopy'}({code_of(program, place, node)})"
    whole = [*patches, *replacement(program, place, code)]
    return apply_patches(whole) if known or patches else None


def _imported(program: Program, source: Source) -> list[Patch]:
    """`import copy` before the source's first import, else before its first statement."""
    statements = source.tree.body
    imports = [s for s in statements if isinstance(s, (ast.Import, ast.ImportFrom))]
    plain = [s for s in imports if getattr(s, "module", "") != "__future__"]
    span = source.span((plain or statements)[0]) if statements else None
    if span is None or span.column or _is_known(program, "copy"):
        return []
    start = Span(span.line, 0, span.line, 0)
    return [Patch(source, start, "import copy\n")]


def _is_known(program: Program, name: str) -> bool:
    """Whether the program uses the name for something of its own."""
    fields = ("id", "arg", "name", "asname")
    found = (node for _, node in index_of(program).nodes(ast.AST, naming=(name,)))
    return any(
        name in (getattr(node, field, None) for field in fields)
        for node in found
        if isinstance(node, _NAMING)
    )


_NAMING = (ast.Name, ast.arg, ast.alias, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
