"""A deep copy whose parameters a loop updates, made a function of the original's parameters.

`torch.func.functional_call` takes the parameters as tensors, so that an update by hand is an
operation like any other and the gradient passes through it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from autograd_explain.model import Edits, Place
from autograd_explain.program import Function, Program, Source, called_name
from autograd_explain.rewrite.analysis.effects import fresh
from autograd_explain.rewrite.engine.imports import torch_at
from autograd_explain.rewrite.engine.tree import tree_at
from autograd_explain.rewrite.transforms.out_of_place import value_of_write
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches

_LISTS = {"parameters": "values", "named_parameters": "items"}


@dataclass(frozen=True)
class _Copy:
    """`name = copy.deepcopy(model)` in a function."""

    program: Program
    source: Source
    place: Place
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
    weights = _fresh(copy, "weights")
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
    if source is None or place is None or function is None:
        return None
    if not isinstance(statement, ast.Assign):
        return None
    call, target = statement.value, statement.targets[0]
    if called_name(call) != "deepcopy" or not isinstance(call, ast.Call) or len(call.args) != 1:
        return None
    if not isinstance(target, ast.Name) or len(statement.targets) != 1:
        return None
    return _Copy(program, source, place, function, statement, target.id, ast.unparse(call.args[0]))


def _fresh(copy: _Copy, wish: str) -> str:
    tree = tree_at(copy.program, copy.place)
    return fresh(tree, tree.statement(copy.place) or tree.module, wish)


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
    param, whole = taken[at[0]], _block_of(copy.function, loop)
    span = copy.source.span(whole)
    new = _new_value(copy, loop.body[0], param)
    if new is None or span is None or not isinstance(param, ast.Name):
        return None
    name = _fresh(copy, "name")
    targets = [f"({name}, {param.id})" if t is param else ast.unparse(t) for t in taken]
    lists = [f"{weights}.items()" if i in at else ast.unparse(z) for i, z in enumerate(zipped)]
    pairs = f"for {', '.join(targets)} in zip({', '.join(lists)})"
    return Patch(copy.source, span, f"{weights}.update({{{name}: {new} {pairs}}})")


def _block_of(function: Function, loop: ast.For) -> ast.stmt:
    """The loop, or the block under no_grad of which it is the whole."""
    blocks = (n for n in ast.walk(function) if isinstance(n, ast.With) and n.body == [loop])
    off = (b for b in blocks if called_name(b.items[0].context_expr) == "no_grad")
    return next(off, loop)


def _new_value(copy: _Copy, update: ast.stmt, param: ast.expr) -> str | None:
    """What an update gives a parameter, as an expression that writes nothing."""
    call = update.value if isinstance(update, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        written = call.func.value
    elif isinstance(update, ast.Assign):
        written = update.targets[0]
    elif isinstance(update, ast.AugAssign):
        written = update.target
    else:
        return None
    name = ast.unparse(param)
    if ast.unparse(written) not in (name, f"{name}.data"):
        return None
    if isinstance(call, ast.Call) and called_name(call) == "copy_" and len(call.args) == 1:
        value = ast.unparse(call.args[0])
        if f"{name}.data" not in value:  # of the parameter's own shape and dtype
            return value
    return value_of_write(copy.program, copy.source.place(update.lineno, node=update))
