"""A hook's result brought back to the shape of the gradient that it replaces."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from autograd_explain.model import Place
from autograd_explain.program import Program, Source, called_name
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, keyword_added

_REDUCE = frozenset("mean sum amax amin max min norm std var prod median logsumexp".split())
_REARRANGE = frozenset("flatten view reshape squeeze unsqueeze ravel unflatten".split())
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
Function = ast.FunctionDef | ast.Lambda


def of_gradients_shape(program: Program, place: Place | None, gradient: str) -> Edits | None:
    """`return g.mean(0)` -> `return g.mean(0, keepdim=True).expand_as(g)`; what was rearranged
    (`g.flatten()`) gets `.reshape_as(g)`.

    None where another number of operations than one changed the shape (`g[0].sum(0)`).
    """
    source, node = program.source_at(place), program.expression_at(place)
    function = None if source is None or node is None else _function(source, node)
    if source is None or node is None or place is None or function is None:
        return None
    changing = [c for c in _flowing(function, node) if called_name(c) in _REDUCE | _REARRANGE]
    if len(changing) != 1 or not gradient or _is_bound_again(function, gradient):
        return None
    (call,) = changing
    if not _reads(function, call, gradient) or _takes_part(function, node, gradient):
        return None
    if called_name(call) in _REARRANGE:
        return apply_patches(_behind(source, node, f".reshape_as({gradient})"))
    if not _has_dim(call) or any(k.arg == "keepdim" for k in call.keywords):
        return None
    kept = keyword_added(program, replace(place, span=source.span(call)), "keepdim", "True")
    return apply_patches([*kept, *_behind(source, node, f".expand_as({gradient})")])


def in_its_place(program: Program, place: Place | None, gradient: str) -> Edits | None:
    """`return g[rows:]` -> the part in its place among zeros, the rest of which has no gradient.

    None where more than one part of the gradient is read, or what is read changes the shape again.
    """
    found = _last_return(program, place)
    if found is None:
        return None
    source, function, last, node = found
    parts = {ast.unparse(n) for n in ast.walk(node) if _is_part(n, gradient)}
    changing = [c for c in _flowing(function, node) if called_name(c) in _REDUCE | _REARRANGE]
    if len(parts) != 1 or changing or _is_bound_again(function, gradient):
        return None
    (part,) = parts
    taken = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    name = next(n for i in count() if (n := f"kept{i or ''}") not in taken)
    indent, span = " " * last.col_offset, source.span(last)
    lines = (
        f"{name} = {gradient}.new_zeros({gradient}.shape)",
        f"{name}{part.removeprefix(gradient)} = {ast.unparse(node)}",
        f"return {name}",
    )
    return None if span is None else apply_patches([Patch(source, span, f"\n{indent}".join(lines))])


def _is_part(node: ast.AST, gradient: str) -> bool:
    return isinstance(node, ast.Subscript) and ast.unparse(node.value) == gradient


def without_result(program: Program, place: Place | None) -> Edits | None:
    """`return g.norm().item()` behind other statements -> `return`: the hook only looks."""
    found = _last_return(program, place)
    if found is None:
        return None
    source, function, last, node = found
    works, span = any(_has_effect(s) for s in function.body[:-1]), source.span(last)
    if not works or span is None:
        return None
    if any(isinstance(n, (ast.Call, ast.Await)) and not _only_reads(n) for n in ast.walk(node)):
        return None
    return apply_patches([Patch(source, span, "return")])


def _last_return(
    program: Program, place: Place | None
) -> tuple[Source, ast.FunctionDef, ast.Return, ast.expr] | None:
    """The statement that ends a function with what stands at a place."""
    source, node = program.source_at(place), program.expression_at(place)
    function = None if source is None or node is None else _function(source, node)
    if source is None or node is None or not isinstance(function, ast.FunctionDef):
        return None
    last = function.body[-1]
    if not isinstance(last, ast.Return) or last.value is not node:
        return None
    return source, function, last, node


def _has_effect(statement: ast.stmt) -> bool:
    """`seen.append(…)`, `print(…)`, `stats[name] = …`; a docstring does nothing."""
    if isinstance(statement, ast.Assign):
        return any(isinstance(t, (ast.Subscript, ast.Attribute)) for t in statement.targets)
    value = getattr(statement, "value", None)
    return isinstance(statement, ast.AugAssign) or isinstance(value, ast.Call)


def _only_reads(node: ast.AST) -> bool:
    return called_name(node) in (
        *_REDUCE,
        "item",
        "tolist",
        "abs",
        "detach",
        "float",
        "cpu",
        "numpy",
    )


def _function(source: Source, node: ast.AST) -> Function | None:
    """The innermost function around an expression."""
    around = (n for n in source.around(node) if isinstance(n, (ast.FunctionDef, ast.Lambda)))
    return next(around, None)


def _flowing(function: Function, returned: ast.expr) -> Iterator[ast.Call]:
    """The calls that the returned value was computed with."""
    return (n for n in _computation(function, returned) if isinstance(n, ast.Call))


def _reads(function: Function, node: ast.expr, name: str) -> bool:
    found = _computation(function, node)
    return any(isinstance(n, ast.Name) and n.id == name for n in found)


def _takes_part(function: Function, node: ast.expr, gradient: str) -> bool:
    """Whether `[…]` or `.T` also changes the shape of what comes from the gradient; the `[0]`
    behind a reduction with a dimension takes its values."""
    return any(
        _reads(function, inner.value, gradient)
        and not (isinstance(inner, ast.Subscript) and called_name(inner.value) in _PAIRS)
        for inner in _computation(function, node)
        if isinstance(inner, ast.Subscript)
        or (isinstance(inner, ast.Attribute) and inner.attr in ("T", "mT", "H", "mH"))
    )


_PAIRS = ("max", "min", "median")


def _computation(function: Function, node: ast.expr) -> Iterator[ast.AST]:
    """The nodes of an expression and of what was assigned to its local names."""
    pending, seen = [node], set[str]()
    while pending:
        for inner in ast.walk(pending.pop()):
            yield inner
            if isinstance(inner, ast.Name) and inner.id not in seen:
                seen.add(inner.id)
                pending += [a.value for a in _assigned(function, inner.id)]


def _assigned(function: Function, name: str) -> Iterator[ast.Assign]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            if any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                yield node


def _is_bound_again(function: Function, name: str) -> bool:
    return next(_assigned(function, name), None) is not None


def _has_dim(call: ast.Call) -> bool:
    """Whether a reduction names the dimension that it takes away."""
    if any(k.arg in ("dim", "axis") for k in call.keywords):
        return True
    function = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "torch"
    plain = called_name(call) not in (
        "norm",
        "std",
        "var",
    )  # their first argument means other things
    return plain and len(call.args) == 1 + function


def _behind(source: Source, node: ast.expr, text: str) -> list[Patch]:
    span = source.span(node)
    if span is None:
        return []
    if isinstance(node, _ATOMS):
        return [Patch(source, span.end, text)]
    return [Patch(source, span.start, "("), Patch(source, span.end, f"){text}")]
