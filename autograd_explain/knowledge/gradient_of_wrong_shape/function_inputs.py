"""What a custom Function's forward does with an input, and how its backward knows that input and
comes by what it returns."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from autograd_explain.inspect.dataflow.syntax import is_none

_ELEMENTWISE = (ast.Add, ast.Sub, ast.Mult, ast.Div)


@dataclass(frozen=True)
class Lies:
    """Where an input of one dimension lies in what it is broadcast to: along an axis, counted from
    the end, of so many that forward writes."""

    axis: int
    of: int

    def others(self, rank: int) -> tuple[int, ...]:
        """The other dimensions of what has so many; () where it has fewer."""
        return tuple(d for d in range(rank) if d - rank != self.axis) if rank >= self.of else ()


def lies(forward: ast.FunctionDef, name: str) -> Lies | None:
    """By `name.view(1, -1, 1, 1)`, `name[None, :, None]` or `name.unsqueeze(-1)`; None where
    forward does not write so, or in two ways."""
    nodes = list(ast.walk(forward))
    inner = {id(n.value) for n in nodes if isinstance(n, ast.Attribute)}
    found = {at for n in nodes if id(n) not in inner and (at := _at(n, name)) is not None}
    return found.pop() if len(found) == 1 else None


def _at(node: ast.AST, name: str) -> Lies | None:
    if isinstance(node, ast.Subscript) and _is_name(node.value, name):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        kept = [isinstance(part, ast.Slice) for part in parts]
        if not all(k or is_none(part) for k, part in zip(kept, parts, strict=True)):
            return None
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "unsqueeze" and [ast.unparse(a) for a in node.args] == ["-1"]:
            before = Lies(-1, 1) if _is_name(node.func.value, name) else _at(node.func.value, name)
            return None if before is None else Lies(before.axis - 1, before.of + 1)
        if node.func.attr not in ("view", "reshape") or not _is_name(node.func.value, name):
            return None
        kept = [not _is_one(part) for part in node.args]
    else:
        return None
    return Lies(kept.index(True) - len(kept), len(kept)) if sum(kept) == 1 else None


def is_operand(forward: ast.FunctionDef, name: str) -> bool:
    """Whether forward does nothing with an input but `x + name` and the like: its dimensions are
    the last ones."""
    nodes = list(ast.walk(forward))
    sums = [n for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, _ELEMENTWISE)]
    operands = [side for n in sums for side in (n.left, n.right)]
    read = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
    return bool(read) and all(n in operands for n in read)


def known_as(forward: ast.FunctionDef, backward: ast.FunctionDef, name: str) -> str:
    """The name that backward has for forward's input `name`: what it takes from
    `ctx.saved_tensors` or from `ctx.limit`; "" where it takes it from neither or changes it."""
    found = [*_taken(forward, backward, name)]
    stored = [n.id for n in ast.walk(backward) if isinstance(n, ast.Name) and _is_stored(n)]
    return found[0] if len(found) == 1 and stored.count(found[0]) == 1 else ""


def stands_for(backward: ast.FunctionDef | None, node: ast.AST) -> list[ast.expr]:
    """What a name that backward returns may stand for, an arm of `a if b else None` each; nothing
    where it may be something else, or be changed in place."""
    if isinstance(node, ast.Name) and backward is not None:
        nodes = list(ast.walk(backward))
        assigned = [n for n in nodes if isinstance(n, ast.Assign)]
        values = [n.value for n in assigned for t in n.targets if _is_name(t, node.id)]
        stored = [n for n in nodes if isinstance(n, ast.Name) and _is_stored(n)]
        whole = len(values) == [n.id for n in stored].count(node.id)
        changed = any(_is_changed(n, node.id) for n in nodes)
        return [arm for v in values for arm in _arms(v)] if whole and not changed else []
    return _arms(node) if isinstance(node, ast.expr) else []


def _arms(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.IfExp):
        return [*_arms(node.body), *_arms(node.orelse)]
    return [node]


def _is_changed(node: ast.AST, name: str) -> bool:
    """By `name.squeeze_()`."""
    return isinstance(node, ast.Attribute) and node.attr[-1] == "_" and _is_name(node.value, name)


def read_once(backward: ast.FunctionDef | None, node: ast.AST) -> bool:
    """Whether backward does nothing else with what it returns by this name."""
    names = [n for n in ast.walk(backward) if isinstance(n, ast.Name)] if backward else []
    read = [n.id for n in names if not _is_stored(n)]
    return not isinstance(node, ast.Name) or read.count(node.id) == 1


def _taken(forward: ast.FunctionDef, backward: ast.FunctionDef, name: str) -> Iterator[str]:
    saved, kept = _saved(forward), _kept(forward, name)
    for node in ast.walk(backward):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Attribute):
            continue
        target, attribute = node.targets[0], node.value.attr
        if attribute == "saved_tensors" and isinstance(target, (ast.Tuple, ast.List)):
            pairs = zip(saved, target.elts, strict=False)
            yield from (t.id for s, t in pairs if s == name and isinstance(t, ast.Name))
        elif attribute in kept and isinstance(target, ast.Name):
            yield target.id


def _saved(forward: ast.FunctionDef) -> list[str]:
    """The names that `ctx.save_for_backward(x, limit)` is given."""
    for node in ast.walk(forward):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "save_for_backward":
                return [getattr(given, "id", "") for given in node.args]
    return []


def _kept(forward: ast.FunctionDef, name: str) -> set[str]:
    """`limit` of `ctx.limit = limit`."""
    assigned = (
        n for n in ast.walk(forward) if isinstance(n, ast.Assign) and _is_name(n.value, name)
    )
    return {n.targets[0].attr for n in assigned if isinstance(n.targets[0], ast.Attribute)}


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
