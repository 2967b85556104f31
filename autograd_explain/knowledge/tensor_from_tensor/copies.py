"""`torch.tensor(x)` of a tensor x -> `x.detach().clone()`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.engine.cst_tools import (
    dotted,
    head,
    keyword,
    literal_bool,
    method,
    positional,
    same,
)
from autograd_explain.rewrite.engine.draft import Draft, only
from autograd_explain.rewrite.engine.imports import Imports, imports_at
from autograd_explain.rewrite.engine.tree import Statement, tree_at

_MAKERS = ("torch.tensor", "torch.as_tensor", "torch.asarray")
_KNOWN = frozenset({"dtype", "device", "requires_grad", "data"})


def tensor_copy(
    program: Program, place: Place, expr: str | None = None, *, keep_graph: bool = False
) -> Edits | None:
    """`torch.tensor(x, dtype=d)` -> `x.detach().clone().to(d)`; `requires_grad=` is kept.

    Also `y.new_tensor(x)`.  `expr` is the copied tensor where there are several.  `keep_graph=True`
    leaves the gradient through: `x.clone()`.
    """
    tree, imports = tree_at(program, place), imports_at(program, place)

    def drafts(statement: Statement) -> Iterator[Draft]:
        for node in head(statement):
            copied = _copied(imports, node)
            if copied is None or (expr is not None and not same(tree, copied, expr)):
                continue
            if expr is None and place.span not in (None, tree.span(node), tree.span(statement)):
                continue
            assert isinstance(node, cst.Call)
            new = _copy(node, copied, keep_graph)
            if new is not None:
                yield Draft(tree).replace(node, new)

    return only(draft for statement in tree.candidates(place) for draft in drafts(statement))


def _copied(imports: Imports, node: cst.CSTNode) -> cst.BaseExpression | None:
    """The argument of a copying call."""
    if not isinstance(node, cst.Call):
        return None
    new = isinstance(node.func, cst.Attribute) and node.func.attr.value == "new_tensor"
    if not new and imports.full(dotted(node.func)) not in _MAKERS:
        return None
    given = positional(node)
    data = given[0] if given else keyword(node, "data")
    return None if data is None else data.value


def _copy(
    call: cst.Call, copied: cst.BaseExpression, keep_graph: bool
) -> cst.BaseExpression | None:
    """The copy with the call's dtype, device and requires_grad; None for other arguments."""
    names = {a.keyword.value for a in call.args if a.keyword is not None}
    if names - _KNOWN or len(positional(call)) > 1 or isinstance(copied, (cst.List, cst.Tuple)):
        return None
    new = method(copied, "clone()" if keep_graph else "detach().clone()")
    to = [a.value for name in ("device", "dtype") if (a := keyword(call, name)) is not None]
    if len(to) == 2:
        new = method(new, "to({}, {})".format(*map(_code, to)))
    elif to:
        new = method(new, f"to({_code(to[0])})")
    elif isinstance(call.func, cst.Attribute) and call.func.attr.value == "new_tensor":
        new = method(new, f"to({_code(call.func.value)})")
    flag = keyword(call, "requires_grad")
    if flag is None or literal_bool(flag.value) is False:
        return new
    if keep_graph:  # it requires grad by itself
        return new if literal_bool(flag.value) else None
    wanted = "" if literal_bool(flag.value) else _code(flag.value)
    return method(new, f"requires_grad_({wanted})")


def _code(node: cst.BaseExpression) -> str:
    return cst.Module([]).code_for_node(node)
