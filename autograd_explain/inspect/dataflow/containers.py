"""Parts of containers: elements of displays, subscripts, what a loop takes from an iterable."""

from __future__ import annotations

import ast

from . import safe_lookup
from .expression import ExprAt
from .names import from_key
from .protocol import Slicing
from .reaching_definitions import Each, Part, constant_of, key_of
from .syntax import is_container, pick, pick_value

_PASS_THROUGH = frozenset({"list", "tuple", "reversed", "sorted", "iter", "tqdm", "trange"})


def put_in(slicer: Slicing, spot: ExprAt) -> list[ExprAt]:
    """What statements put into the container that `spot` takes a part of."""
    if not spot.path:
        return []
    part, rest = spot.path[0], spot.path[1:]
    put = slicer.insertions(ExprAt(spot.scope, spot.node), part)
    return [ExprAt(s.scope, s.node, (*s.path, *rest)) for s in put]


def from_display(spot: ExprAt) -> list[ExprAt] | None:
    """Elements of a literal or a comprehension, where a part is asked for."""
    if not spot.path:
        return None
    if is_container(spot.node):
        return []
    part, rest = spot.path[0], spot.path[1:]
    node = spot.node
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return [ExprAt(spot.scope, node.elt, rest)]
    if isinstance(node, ast.DictComp):
        return [ExprAt(spot.scope, node.value, rest)]
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [ExprAt(spot.scope, n, rest) for n in pick(node.elts, part)]
    if isinstance(node, ast.Dict):
        return [ExprAt(spot.scope, n, rest) for n in pick_value(node, part)]
    return None


def from_subscript(slicer: Slicing, spot: ExprAt, node: ast.Subscript) -> list[ExprAt] | None:
    """What was put under a subscript; None where it reads a tensor."""
    if _reads_tensor(slicer, spot, node):
        return None
    key = key_of(node)
    direct = from_key(slicer, spot, key) if key is not None else []
    direct = [*put_in(slicer, spot), *direct]
    if direct:
        return direct
    constant = constant_of(node.slice)
    base = ExprAt(spot.scope, node.value)
    part: Part = Each.VALUE if constant is None else constant
    inside = _elements(slicer, base, part, spot.path)
    return inside or None


def _reads_tensor(slicer: Slicing, spot: ExprAt, node: ast.Subscript) -> bool:
    if isinstance(node.slice, (ast.Slice, ast.Tuple)):
        return not isinstance(slicer.value(ExprAt(spot.scope, node.value)), (list, tuple))
    base = ExprAt(spot.scope, node.value)
    value = slicer.value(base)
    if value is not safe_lookup.MISSING:
        return safe_lookup.is_tensor(value)
    names = (name for maker in slicer.makers(base) for name in maker.via)
    return any(safe_lookup.is_tensor(slicer.value(name)) for name in names)


def _elements(slicer: Slicing, base: ExprAt, part: Part, path: tuple[Part, ...]) -> list[ExprAt]:
    """What was put into a container under `part`, nearest first."""
    return slicer.makers(ExprAt(base.scope, base.node, (*base.path, part, *path)))


def through_iteration(slicer: Slicing, spot: ExprAt, node: ast.Call) -> list[ExprAt] | None:
    """What `zip`, `enumerate`, `d.items()` and the like hand on of their arguments."""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    attr = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    path = spot.path
    if name in _PASS_THROUGH and node.args and path:
        return [ExprAt(spot.scope, node.args[0], path)]
    if name == "zip" and len(path) > 1 and isinstance(path[1], int):
        picked = pick(node.args, path[1])
        return [ExprAt(spot.scope, n, (Each.ITEM, *path[2:])) for n in picked]
    if name == "enumerate" and len(path) > 1 and path[1] == 1 and node.args:
        return [ExprAt(spot.scope, node.args[0], (Each.ITEM, *path[2:]))]
    if attr == "items" and isinstance(node.func, ast.Attribute) and len(path) > 1 and path[1] == 1:
        return _elements(slicer, ExprAt(spot.scope, node.func.value), Each.VALUE, path[2:]) or None
    if attr == "values" and isinstance(node.func, ast.Attribute) and path:
        return _elements(slicer, ExprAt(spot.scope, node.func.value), Each.VALUE, path[1:]) or None
    if name == "dict" and path:
        picked = [k.value for k in node.keywords if path[0] in (k.arg, Each.VALUE)]
        return [ExprAt(spot.scope, n, path[1:]) for n in picked] or None
    return None
