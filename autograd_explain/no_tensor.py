"""Edits that call a tensor's method on what is no tensor: `net.clone()` fails where it runs."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

import torch

from .arguments import parameters
from .inspect.dataflow import ExprAt, Slicer
from .inspect.dataflow.reaching_definitions import all_bindings, head_of, key_of
from .inspect.dataflow.safe_lookup import MISSING
from .isolation.type_checks import class_attribute, is_a
from .program import Source
from .program_index import index_of

#: Methods of tensors that rewrites bring in.
_METHODS = frozenset({"clone", "detach", "retain_grad", "contiguous"})


def asked_of_no_tensor(slicer: Slicer, changed: Iterable[tuple[Source, Source]]) -> bool:
    """Whether a text that takes another one's place brings in a method of tensors for what surely
    has none: a live object of another class, or a result of which the user reads what tensors do
    not have (`model.encode(x).clone().latent_dist`)."""
    return any(
        _is_none(slicer, old, call, parent)
        for old, new in changed
        for call, parent in _brought_in(old, new)
    )


def _brought_in(old: Source, new: Source) -> Iterator[tuple[ast.Attribute, ast.AST | None]]:
    """The methods of tensors that the new text calls and the old one did not, each with what the
    call stands in."""
    known = Counter(ast.unparse(method) for method, _ in _methods(old.tree))
    for method, parent in _methods(new.tree):
        text = ast.unparse(method)
        if known[text]:
            known[text] -= 1
        else:
            yield method, parent


def _methods(tree: ast.AST) -> Iterator[tuple[ast.Attribute, ast.AST | None]]:
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _METHODS:
                yield node.func, parents.get(node)


def _is_none(slicer: Slicer, source: Source, method: ast.Attribute, parent: ast.AST | None) -> bool:
    if isinstance(parent, ast.Attribute) and parent.attr not in _of_tensors():
        return True
    if key_of(method.value) is None:
        return False
    text = ast.unparse(method.value)
    found = [n for n in source.nodes if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))]
    read = [n for n in found if isinstance(n.ctx, ast.Load) and ast.unparse(n) == text]
    return bool(read) and all(_lacks(slicer, source, n, method.attr) for n in read)


def _lacks(slicer: Slicer, source: Source, node: ast.expr, method: str) -> bool:
    """Whether what an expression names is live and has no such method.

    An array, a number or a list may be a tensor after the edit.
    """
    spot = slicer.at(source, node)
    value = slicer.value(spot)
    if value is MISSING or class_attribute(type(value), method) is not None:
        return False
    if is_a(value, torch.nn.Module):
        return True
    package = type(value).__module__.partition(".")[0]
    plain = package in ("builtins", "numpy", "torch")
    other = not plain and class_attribute(type(value), "__array__") is None
    return other and _is_bound_once(slicer, spot)


def _is_bound_once(slicer: Slicer, spot: ExprAt) -> bool:
    """Whether the name never stood for anything else, so that it is what it was at the spot."""
    body, name = spot.scope.body, head_of(spot.text)
    if isinstance(body, ast.Module):
        bodies = [s.tree for s in index_of(slicer.program).namespace(spot.scope.source)]
        return sum(len(all_bindings(b, name)) for b in bodies) < 2
    return len(all_bindings(body, name)) + (name in parameters(body)) < 2


@cache
def _of_tensors() -> frozenset[str]:
    return frozenset(dir(torch.Tensor))
