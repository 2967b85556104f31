"""`torch.nn.utils.weight_norm` -> `torch.nn.utils.parametrizations.weight_norm`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from autograd_explain.model import Place
from autograd_explain.program import Program, Source
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.engine.imports import Imports
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches

_UTILS = "torch.nn.utils"


def parametrized(program: Program, function: str, asked: Iterable[Place] = ()) -> Edits | None:
    """Every mention of a function of torch.nn.utils in the cells, and in the files of the places,
    as the function of the same name in its module `parametrizations`; None where one of them
    cannot be changed."""
    patches: list[Patch] = []
    files = [s for p in asked if (s := program.source_at(p)) is not None]
    named = index_of(program).nodes(ast.AST, naming=(function,))
    for source in dict.fromkeys((*(source for source, _ in named), *files)):
        found = list(_mentions(program, source, function))
        if None in found:
            return None
        patches += [p for p in found if p is not None]
    return apply_patches(patches)


def _mentions(program: Program, source: Source, function: str) -> Iterator[Patch | None]:
    imports = Imports.of(program, source)
    old = f"{_UTILS}.{function}"
    new = f"{_UTILS}.parametrizations.{function}"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr == function:
            full = imports.full(ast.unparse(node))
            if full == old:
                owner = source.segment(node.value)
                yield _patch(source, node, f"{owner}.parametrizations.{function}")
            elif full != new and not _is_own(node):
                yield None
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module in (_UTILS, old):
            if any(a.name == function for a in node.names):
                yield _imported(source, node, function)


def _is_own(node: ast.Attribute) -> bool:
    """Whether it is an option of the user's: `self.weight_norm`, `config.weight_norm = True`."""
    owner = node.value
    stored = isinstance(node.ctx, ast.Store)
    return stored or (isinstance(owner, ast.Name) and owner.id in ("self", "args", "config", "cfg"))


def _imported(source: Source, node: ast.ImportFrom, function: str) -> Patch | None:
    """`from torch.nn.utils import a, weight_norm` as two imports; None with a comment inside."""
    if "#" in (source.segment(node) or "#"):
        return None
    moved = [a for a in node.names if a.name == function]
    kept = [a for a in node.names if a.name != function]
    lines = [
        ast.unparse(ast.ImportFrom(module, names, 0))
        for module, names in ((node.module, kept), (f"{_UTILS}.parametrizations", moved))
        if names
    ]
    return _patch(source, node, ("\n" + " " * node.col_offset).join(lines))


def _patch(source: Source, node: ast.AST, text: str) -> Patch | None:
    span = source.span(node)
    return None if span is None else Patch(source, span, text)
