"""Tensors handed to NumPy, matplotlib and plain Python: detached, on the CPU."""

from __future__ import annotations

import libcst as cst

from ..model import Edit, Place
from ..program import Program
from .code import expression, find, head, method, receiver
from .draft import Draft
from .locate import Statement, Tree, tree_at
from .names import used_names

Edits = tuple[Edit, ...]
_TO_HOST = ("detach", "cpu")


def numpy_detach(
    program: Program, place: Place, expr: str | None = None, *, cpu: bool = True
) -> Edits | None:
    """`x.numpy()` -> `x.detach().cpu().numpy()`; what is already called is not called twice.

    `expr` is the tensor or the whole call where there are several; a tensor that is not followed by
    `.numpy()` (an argument of `np.asarray` or `plt.plot`) gets all of it.  `cpu=False` leaves
    `.cpu()` out.
    """
    tree = tree_at(program, place)
    if tree is None:
        return None
    drafts = []
    for statement in tree.candidates(place):
        calls = _numpy_calls(statement)
        if place.span is not None and len(calls) > 1:
            calls = [c for c in calls if tree.span(c) == place.span] or calls
        if expr is not None:
            read = find(tree, statement, expr)
            calls = [c for c in calls if any(n is c or _stem(c) is n for n in read)]
            if not calls:
                drafts += [_replaced(tree, n, _on_host(n, cpu)) for n in read]
                continue
        drafts += [_replaced(tree, c, _on_host(_receiver(c), cpu)) for c in calls]
    return drafts[0].edits() if len(drafts) == 1 else None


def numbers_of_list(
    program: Program, place: Place, expr: str, *, scalars: bool = True
) -> Edits | None:
    """A list of tensors as a list of numbers: `np.array(xs)` -> `np.array([t.item() for t in xs])`.

    `scalars=False` keeps arrays: `t.detach().cpu().numpy()`.
    """
    tree = tree_at(program, place)
    if tree is None:
        return None
    drafts = []
    for statement in tree.candidates(place):
        for node in find(tree, statement, expr):
            name = next(n for n in ("t", "v", "tensor", "t_") if n not in used_names(node))
            value = f"{name}.item()" if scalars else f"{name}.detach().cpu().numpy()"
            new = expression(f"[{value} for {name} in {{x}}]", x=node)
            drafts.append(_replaced(tree, node, new))
    return drafts[0].edits() if len(drafts) == 1 else None


def _numpy_calls(statement: Statement) -> list[cst.Call]:
    calls = [n for n in head(statement) if isinstance(n, cst.Call)]
    return [c for c in calls if isinstance(c.func, cst.Attribute) and c.func.attr.value == "numpy"]


def _receiver(call: cst.Call) -> cst.BaseExpression:
    assert isinstance(call.func, cst.Attribute)
    return call.func.value


def _stem(call: cst.Call) -> cst.BaseExpression:
    """The tensor behind `x.detach().cpu().numpy()`."""
    node = _receiver(call)
    while _host_call(node) is not None:
        assert isinstance(node, cst.Call)
        node = _receiver(node)
    return node


def _host_call(node: cst.BaseExpression) -> str | None:
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        name = node.func.attr.value
        return name if name in _TO_HOST and not node.args else None
    return None


def _on_host(node: cst.BaseExpression, cpu: bool) -> cst.BaseExpression:
    """`node.detach().cpu().numpy()`, with the calls that are already there kept once."""
    called = set()
    while (name := _host_call(node)) is not None:
        called.add(name)
        assert isinstance(node, cst.Call)
        node = _receiver(node)
    to_cpu = ".cpu()" if cpu or "cpu" in called else ""
    return method(receiver(node), f"detach(){to_cpu}.numpy()")


def _replaced(tree: Tree, old: cst.BaseExpression, new: cst.BaseExpression) -> Draft:
    draft = Draft(tree)
    draft.replace(old, new)
    return draft
