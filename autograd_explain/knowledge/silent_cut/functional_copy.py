"""A deep copy whose parameters a loop updates, made a function of the original's parameters.

`torch.func.functional_call` takes the parameters as tensors, so that an update by hand is an
operation like any other and the gradient passes through it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from autograd_explain.model import Place
from autograd_explain.program import Program, Source, called_name
from autograd_explain.rewrite.engine.imports import torch_at
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.transforms.functional_layer import Function, fresh
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_LISTS = {"parameters": "values", "named_parameters": "items"}


@dataclass(frozen=True)
class _Copy:
    """`name = copy.deepcopy(model)` in a function."""

    source: Source
    function: Function
    statement: ast.Assign
    name: str
    model: str


def functional_copy(program: Program, place: Place | None) -> Edits | None:
    """`fast = deepcopy(model)` at `place`, and the loops that write `fast.parameters()`.

    `weights = dict(model.named_parameters())`, and `fast` calls the model with them; a loop gives
    `weights` new values.  None where there is no such loop, or one does anything else.
    """
    copy, torch = _copy_at(program, place), torch_at(program, place)
    if copy is None or torch is None:
        return None
    weights = fresh(copy.source, "weights")
    loops = [_update(copy, weights, loop) for loop in _loops(copy)]
    known = [patch for patch in loops if patch is not None]
    if not known or len(known) < len(loops):
        return None
    inside = [patch.span for patch in known]
    lists = (
        patch
        for patch in _lists(copy, weights)
        if not any(s.line <= patch.span.line <= s.end_line for s in inside)
    )
    return apply_patches([*_made(copy, weights, torch), *known, *lists])


def _copy_at(program: Program, place: Place | None) -> _Copy | None:
    source = program.source_at(place)
    statement = None if place is None else program.statement_at(place)
    function = None if source is None or place is None else source.function_at(place)
    if source is None or function is None or not isinstance(statement, ast.Assign):
        return None
    call, target = statement.value, statement.targets[0]
    if called_name(call) != "deepcopy" or not isinstance(call, ast.Call) or len(call.args) != 1:
        return None
    if not isinstance(target, ast.Name) or len(statement.targets) != 1:
        return None
    return _Copy(source, function, statement, target.id, ast.unparse(call.args[0]))


def _made(copy: _Copy, weights: str, torch: str) -> Iterator[Patch]:
    span = copy.source.span(copy.statement)
    indent = "\n" + " " * copy.statement.col_offset
    call = f"{torch}.func.functional_call({copy.model}, {weights}, args)"
    lines = [
        f"{weights} = dict({copy.model}.named_parameters())",
        f"{copy.name} = lambda *args: {call}",
    ]
    if span is not None:
        yield Patch(copy.source, span, indent.join(lines))


def _lists(copy: _Copy, weights: str) -> Iterator[Patch]:
    """`fast.parameters()` -> `weights.values()`."""
    for node in ast.walk(copy.function):
        span = copy.source.span(node) if isinstance(node, ast.Call) else None
        if span is not None and (listed := _listed(copy, node)):
            yield Patch(copy.source, span, f"{weights}.{listed}()")


def _listed(copy: _Copy, node: ast.AST) -> str:
    """What a dictionary of the parameters gives in the place of a call; "" for another call."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    of_copy = ast.unparse(node.func.value) == copy.name and not node.args and not node.keywords
    return _LISTS.get(node.func.attr, "") if of_copy else ""


def _loops(copy: _Copy) -> Iterator[ast.For]:
    """The loops over the copy's parameters."""
    for node in ast.walk(copy.function):
        if isinstance(node, ast.For) and any(_listed(copy, n) for n in ast.walk(node.iter)):
            yield node


def _update(copy: _Copy, weights: str, loop: ast.For) -> Patch | None:
    """`for p, g in zip(fast.parameters(), gs): p.data -= lr * g` ->
    `weights.update({name: p - lr * g for (name, p), g in zip(weights.items(), gs)})`."""
    zipped = loop.iter.args if called_name(loop.iter) == "zip" else []  # type: ignore[attr-defined]
    taken = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
    at = [i for i, given in enumerate(zipped) if _listed(copy, given) == "values"]
    if len(zipped) != len(taken) or len(at) != 1 or len(loop.body) != 1 or loop.orelse:
        return None
    param = taken[at[0]]
    new = _new_value(loop.body[0], param.id) if isinstance(param, ast.Name) else None
    whole = _block_of(copy.function, loop)
    span = copy.source.span(whole)
    if new is None or span is None or not isinstance(param, ast.Name):
        return None
    name = fresh(copy.source, "name")
    targets = [f"({name}, {param.id})" if t is param else ast.unparse(t) for t in taken]
    lists = [f"{weights}.items()" if i in at else ast.unparse(z) for i, z in enumerate(zipped)]
    pairs = f"for {', '.join(targets)} in zip({', '.join(lists)})"
    return Patch(copy.source, span, f"{weights}.update({{{name}: {new} {pairs}}})")


def _block_of(function: Function, loop: ast.For) -> ast.stmt:
    """The loop, or the block under no_grad of which it is the whole."""
    blocks = (n for n in ast.walk(function) if isinstance(n, ast.With) and n.body == [loop])
    off = (b for b in blocks if called_name(b.items[0].context_expr) == "no_grad")
    return next(off, loop)


def _new_value(statement: ast.stmt, name: str) -> str | None:
    """What an update gives a parameter, as an expression that writes nothing."""
    if isinstance(statement, ast.AugAssign) and _is_parameter(statement.target, name):
        sign = _OPERATORS.get(type(statement.op))
        value = ast.unparse(_plain(statement.value, name))
        compound = isinstance(statement.value, (ast.BinOp, ast.IfExp))
        product = isinstance(statement.value, ast.BinOp) and type(statement.value.op) is ast.Mult
        return sign and f"{name} {sign} {f'({value})' if compound and not product else value}"
    if isinstance(statement, ast.Assign) and _is_parameter(statement.targets[0], name):
        return ast.unparse(_plain(statement.value, name))
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        method = call.func.attr
        if _is_parameter(call.func.value, name) and method.endswith("_"):
            given = [ast.unparse(a) for a in call.args]
            given += [f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords]
            copied = method == "copy_" and len(call.args) == 1
            new = ast.unparse(_plain(call.args[0], name)) if copied else ""
            return new or f"{name}.{method[:-1]}({', '.join(given)})"
    return None


def _is_parameter(node: ast.expr, name: str) -> bool:
    """`p`, or `p.data`."""
    return ast.unparse(node) in (name, f"{name}.data")


class _Plain(ast.NodeTransformer):
    """`p.data` as `p`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        data = node.attr == "data" and ast.unparse(node.value) == self._name
        return node.value if data else self.generic_visit(node)


def _plain(node: ast.expr, name: str) -> ast.expr:
    copied = ast.parse(ast.unparse(node), mode="eval").body
    found = _Plain(name).visit(copied)
    assert isinstance(found, ast.expr)
    return found
