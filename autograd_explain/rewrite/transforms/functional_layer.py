"""A computed tensor used in the place of a parameter, without making a parameter of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ...model import Place
from ...program import Program, Source, called_name
from ..engine.imports import torch_at
from ..engine.proposal import Edits
from .uncut import Patch, apply_patches

Function = ast.FunctionDef | ast.AsyncFunctionDef
_OFF = ("no_grad", "inference_mode")


@dataclass(frozen=True)
class _Made:
    """`owner.name = Parameter(value)`, `owner.name.data = value`, `owner.name.copy_(value)`.

    `statement` is it, or the block of simple statements under no_grad that it stands in.
    """

    statement: ast.stmt
    line: int
    target: ast.Attribute
    owner: str
    name: str
    value: ast.expr


def parameter_as_argument(program: Program, place: Place) -> Edits | None:
    """`self.fc.weight = nn.Parameter(w)`, `self.fc(x)` -> `weight = w`,
    `torch.func.functional_call(self.fc, {"weight": weight}, (x,))`; the same for
    `self.fc.weight.data = w` and `self.fc.weight.copy_(w)`.

    A parameter of the object itself (`self.weight`) is a local name for the rest of the function.
    None where the function does anything else with the layer.
    """
    source, torch = program.source_at(place), torch_at(program, place)
    function = None if source is None else source.function_at(place)
    if source is None or function is None or torch is None:
        return None
    made = [m for m in _all_made(function) if m.owner == _owner_at(source, function, place)]
    if not made:
        return None
    names = {m.name: fresh(source, m.name) for m in made}
    patches = list(_assigned(source, made, names))
    owner, last = made[0].owner, max(m.line for m in made)
    if not _always_made(function, made) or _is_read_otherwise(source, function, owner, made):
        return None
    uses = _own_uses if owner == "self" else _layer_uses
    used = list(uses(source, function, made, names, last, torch))
    known = [p for p in used if p is not None]
    return apply_patches([*patches, *known]) if known and len(known) == len(used) else None


def _all_made(function: Function) -> Iterator[_Made]:
    blocks = {s: w for w in ast.walk(function) if isinstance(w, ast.With) for s in w.body}
    for node in ast.walk(function):
        found = _given(node)
        if found is None or not isinstance(node, ast.stmt):
            continue
        target, value = found
        block = blocks.get(node)
        whole = block if block is not None and _is_plain_no_grad(block) else node
        yield _Made(whole, node.lineno, target, ast.unparse(target.value), target.attr, value)


def _given(node: ast.AST) -> tuple[ast.Attribute, ast.expr] | None:
    """The attribute that a statement gives a value, and that value."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Attribute) and target.attr == "data":
            return _attribute(target.value, value)
        if called_name(value) == "Parameter" and isinstance(value, ast.Call) and value.args:
            return _attribute(target, value.args[0])
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args:
        target = call.func.value
        if isinstance(target, ast.Attribute) and target.attr == "data":
            target = target.value
        return _attribute(target, call.args[0]) if call.func.attr == "copy_" else None
    return None


def _attribute(target: ast.expr, value: ast.expr) -> tuple[ast.Attribute, ast.expr] | None:
    return (target, value) if isinstance(target, ast.Attribute) else None


def _is_plain_no_grad(block: ast.With) -> bool:
    """Whether it can be recorded as it stands: simple statements under no_grad."""
    off = all(called_name(i.context_expr) in _OFF for i in block.items)
    return off and all(isinstance(s, (ast.Assign, ast.Expr)) for s in block.body)


def _always_made(function: Function, made: list[_Made]) -> bool:
    """Whether the local names have their values by the time of each use: the assignments stand in
    one block with everything that names the owner, or in the function's own."""
    inner = (n for n in ast.walk(function) if isinstance(getattr(n, "body", None), list))
    blocks = [b for n in inner for b in (getattr(n, "body", []), getattr(n, "orelse", [])) if b]
    block = next((b for b in blocks if all(m.statement in b for m in made)), [])
    here = sum(_naming(statement, made[0].owner) for statement in block)
    return bool(block) and (block is function.body or here == _naming(function, made[0].owner))


def _naming(node: ast.AST, owner: str) -> int:
    """How often a node names the owner, but for what a loop takes it from."""
    named = (ast.Name, ast.Attribute)
    found = (n for n in ast.walk(node) if isinstance(n, named) and ast.unparse(n) == owner)
    return sum(not isinstance(n.ctx, ast.Store) for n in found)


def _is_read_otherwise(source: Source, function: Function, owner: str, made: list[_Made]) -> bool:
    """Whether the layer is used but by calling it, or another method reads the parameter."""
    names = {m.name for m in made}
    if owner == "self":
        return any(_reads_own(method, names) for method in _other_methods(source, function))
    own = {id(n) for m in made for n in ast.walk(m.statement)}
    called = {id(n.func) for n in ast.walk(function) if isinstance(n, ast.Call)}
    return any(
        isinstance(n, (ast.Name, ast.Attribute))
        and isinstance(n.ctx, ast.Load)
        and ast.unparse(n) == owner
        and id(n) not in own | called
        for n in ast.walk(function)
    )


def _other_methods(source: Source, function: Function) -> Iterator[ast.stmt]:
    for cls in ast.walk(source.tree):
        if isinstance(cls, ast.ClassDef) and function in cls.body:
            yield from (s for s in cls.body if s is not function)


def _reads_own(method: ast.stmt, names: set[str]) -> bool:
    return getattr(method, "name", "") != "__init__" and any(
        isinstance(n, ast.Attribute)
        and isinstance(n.ctx, ast.Load)
        and n.attr in names
        and ast.unparse(n.value) == "self"
        for n in ast.walk(method)
    )


def _owner_at(source: Source, function: Function, place: Place) -> str:
    line = place.line - source.offset
    found = [m.owner for m in _all_made(function) if m.line == line]
    return found[0] if found else ""


def fresh(source: Source, name: str) -> str:
    taken = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name)}
    taken |= {n.arg for n in ast.walk(source.tree) if isinstance(n, ast.arg)}
    options = [name, f"new_{name}", *(f"{name}_{i}" for i in range(2, 100))]
    return next(o for o in options if o not in taken)


def _assigned(source: Source, made: list[_Made], names: dict[str, str]) -> Iterator[Patch]:
    local = {m.line: f"{names[m.name]} = {source.segment(m.value)}" for m in made}
    for statement in dict.fromkeys(m.statement for m in made):
        span = source.span(statement)
        body = statement.body if isinstance(statement, ast.With) else [statement]
        lines = [local.get(s.lineno) or source.segment(s) or "" for s in body]
        if span is not None:
            yield Patch(source, span, ("\n" + " " * statement.col_offset).join(lines))


def _layer_uses(
    source: Source, function: Function, made: list[_Made], names: dict[str, str], last: int,
    torch: str,
) -> Iterator[Patch | None]:  # fmt: skip
    """The calls of the layer behind the assignments; None for one that cannot be replaced."""
    owner = made[0].owner
    given = ", ".join(f'"{name}": {local}' for name, local in names.items())
    for node in ast.walk(function):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != owner:
            continue
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        span = source.span(node)
        if node.keywords or starred or not node.args or span is None or node.lineno < last:
            yield None
            continue
        args = ", ".join(source.segment(a) or "" for a in node.args)
        args = f"({args},)" if len(node.args) == 1 else f"({args})"
        call = f"{torch}.func.functional_call({owner}, {{{given}}}, {args})"
        yield Patch(source, span, call)


def _own_uses(
    source: Source, function: Function, made: list[_Made], names: dict[str, str], last: int,
    torch: str,
) -> Iterator[Patch | None]:  # fmt: skip
    """The readings of `self.weight` behind the assignments."""
    targets = [m.target for m in made]
    for node in ast.walk(function):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        span = None if node in targets else source.span(node)
        if ast.unparse(node.value) == made[0].owner and node.attr in names and span is not None:
            yield None if node.lineno <= last else Patch(source, span, names[node.attr])
