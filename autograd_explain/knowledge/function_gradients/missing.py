"""The derivative that a `backward` owes and does not hand back, taken by autograd."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from autograd_explain.arguments import positional_parameters
from autograd_explain.model import Edits, Place
from autograd_explain.program import Program, Source, last_name, own_nodes
from autograd_explain.rewrite import torch_at
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, node_at


@dataclass(frozen=True)
class _Kept:
    """What `forward` saves and `backward` takes out again; inputs by what backward calls them."""

    saving: ast.Call
    taking: ast.Assign
    names: Mapping[str, str]


def derivative_by_autograd(
    program: Program, place: Place, name: str, gradient: str
) -> Edits | None:
    """`None` -> `torch.autograd.functional.vjp(lambda s: torch.tanh(x * s), s, grad)[1]`.

    What the input `name` needs beside it is saved as well.  None where `forward` is more than
    assignments of names and one result, or where what it reads is not known to `backward`.
    """
    source, node = program.source_at(place), node_at(program, place)
    torch = torch_at(program, place)
    backward = None if source is None else source.function_at(place)
    if source is None or torch is None or not gradient or not isinstance(backward, ast.FunctionDef):
        return None
    owner = source.parents.get(backward)
    if not isinstance(owner, ast.ClassDef):
        return None
    methods = {n.name: n for n in owner.body if isinstance(n, ast.FunctionDef)}
    forward = methods.get("forward")
    if node is None or forward is None or "setup_context" in methods:
        return None
    value, kept = _result(forward), _kept(forward, backward)
    if value is None or kept is None:
        return None
    inputs = positional_parameters(forward)
    read = [n for n in inputs[1:] if n in _names(value)]
    if inputs[0] in _names(value) or name not in read:
        return None
    more = [n for n in read if n not in kept.names]
    if set(more) & {n.id for n in ast.walk(backward) if isinstance(n, ast.Name)}:
        return None  # backward has another value under this name
    here = {**kept.names, **{n: n for n in more}}
    own = ast.unparse(_with_names(value, {n: ast.Name(here[n]) for n in read}))
    taken = f"{torch}.autograd.functional.vjp(lambda {here[name]}: {own}, {here[name]}, {gradient})"
    span = source.span(node)
    patches = [] if span is None else [Patch(source, span, f"{taken}[1]")]
    return apply_patches([*patches, *_saved_as_well(source, kept, more)])


def _result(forward: ast.FunctionDef) -> ast.expr | None:
    """What a `forward` returns, with the names it gave values on the way put in."""
    known: dict[str, ast.expr] = {}
    for statement in forward.body:
        if isinstance(statement, ast.Return) and statement.value is not None:
            many = isinstance(statement.value, ast.Tuple)
            return None if many else _with_names(statement.value, known)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(statement, ast.Assign) and isinstance(target, ast.Name):
            known[target.id] = _with_names(statement.value, known)
        elif not _is_on_context(statement, forward):
            return None
    return None


def _is_on_context(statement: ast.stmt, forward: ast.FunctionDef) -> bool:
    """`ctx.save_for_backward(…)`, `ctx.factor = …`, a docstring."""
    node: ast.expr | None
    if isinstance(statement, ast.Expr):
        node = statement.value.func if isinstance(statement.value, ast.Call) else statement.value
    else:
        node = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id == positional_parameters(forward)[0]
    return isinstance(node, ast.Constant)


def _kept(forward: ast.FunctionDef, backward: ast.FunctionDef) -> _Kept | None:
    calls = [n for n in own_nodes(forward) if isinstance(n, ast.Call)]
    saving = [c for c in calls if last_name(c.func) == "save_for_backward"]
    assigned = [n for n in own_nodes(backward) if isinstance(n, ast.Assign)]
    taking = [a for a in assigned if last_name(a.value) == "saved_tensors"]
    if len(saving) != 1 or len(taking) != 1 or not isinstance(taking[0].targets[0], ast.Tuple):
        return None
    pairs = zip(saving[0].args, taking[0].targets[0].elts, strict=False)
    names = {a.id: b.id for a, b in pairs if isinstance(a, ast.Name) and isinstance(b, ast.Name)}
    return _Kept(saving[0], taking[0], names)


def _saved_as_well(source: Source, kept: _Kept, names: list[str]) -> Iterator[Patch]:
    """`ctx.save_for_backward(y)` -> `ctx.save_for_backward(y, x)`, and taken out likewise."""
    target = kept.taking.targets[0]
    for node in (kept.saving, target) if names else ():
        span, old = source.span(node), source.segment(node)
        if span is not None and old is not None:
            end = ")" if old.endswith(")") else ""
            inner = old.removesuffix(")").rstrip().removesuffix(",")
            yield Patch(source, span, ", ".join([inner, *names]) + end)


def _names(value: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}


def _with_names(value: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with others in the places of names."""

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return copy.deepcopy(known.get(node.id, node))

    put: ast.expr = Put().visit(copy.deepcopy(value))
    return put
