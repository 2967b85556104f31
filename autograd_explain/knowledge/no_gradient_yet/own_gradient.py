"""The gradient read where it is: of the parameters themselves instead of detached aliases."""

from __future__ import annotations

import ast
from dataclasses import replace

from autograd_explain.model import Place
from autograd_explain.program import Program, own_nodes
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.transforms.uncut import (
    Patch,
    apply_patches,
    code_of,
    keyword_added,
    replacement,
    without_cut,
)

_INSTEAD = {"items": "named_parameters", "values": "parameters"}


def parameters_themselves(program: Program, place: Place | None) -> Edits | None:
    """`net.state_dict().items()` -> `net.named_parameters()`; `net.state_dict()` gets
    `keep_vars=True`."""
    source, node = program.source_at(place), program.expression_at(place)
    if source is None or place is None or not isinstance(node, ast.Call):
        return None
    if not (isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"):
        return None
    for outer in ast.walk(source.tree):
        if isinstance(outer, ast.Call) and isinstance(outer.func, ast.Attribute):
            if outer.func.value is node and outer.func.attr in _INSTEAD:
                if node.args or node.keywords:
                    return None
                owner = code_of(program, place, node.func.value)
                where = replace(place, span=source.span(outer))
                code = f"{owner}.{_INSTEAD[outer.func.attr]}()"
                return apply_patches(replacement(program, where, code))
    return apply_patches(keyword_added(program, place, "keep_vars", "True"))


def read_of_leaf(program: Program, read: Place | None, leaf: Place | None) -> Edits | None:
    """`d.grad` -> `p.grad` in the whole function, where `d = p.data`.

    None where the function gives `d` several values.
    """
    source, node = program.source_at(read), program.expression_at(read)
    original = program.expression_at(leaf)
    if source is None or read is None or node is None or leaf is None or original is None:
        return None
    code, text = code_of(program, leaf, original), ast.unparse(node)
    patches: list[Patch] = []
    own = list(own_nodes(source.function_around(node) or source.tree))
    updated = {id(n.target) for n in own if isinstance(n, ast.AugAssign)}  # the same tensor
    if sum(_is_bound(n, text) and id(n) not in updated for n in own) > 1:
        return None
    for other in own:
        if isinstance(other, ast.Attribute) and other.attr == "grad":
            if ast.unparse(other.value) == text:
                where = replace(read, span=source.span(other.value))
                patches += replacement(program, where, code)
    return apply_patches(patches)


def undetached(program: Program, read: Place | None, maker: Place | None) -> Edits | None:
    """`[l.weight.data for l in layers]` without `.data`, where nothing is written in place."""
    source, node = program.source_at(read), program.expression_at(read)
    if (
        source is None
        or node is None
        or _is_written(source.function_around(node) or source.tree, node)
    ):
        return None
    return apply_patches(without_cut(program, maker))


def _is_bound(node: ast.AST, text: str) -> bool:
    stored = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
    return stored and ast.unparse(node) == text


def _is_written(around: ast.AST, node: ast.AST) -> bool:
    text = ast.unparse(node)
    for other in ast.walk(around):
        if isinstance(other, ast.AugAssign) and ast.unparse(other.target).startswith(text):
            return True
        if isinstance(other, ast.Call) and isinstance(other.func, ast.Attribute):
            in_place = other.func.attr.endswith("_") and not other.func.attr.endswith("__")
            if in_place and ast.unparse(other.func.value).startswith(text):
                return True
    return False
