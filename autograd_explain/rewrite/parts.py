"""Parts of a tensor in a loop or a comprehension, and who else may look at them."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from .code import clauses, dotted, unpacked, walk
from .inplace_methods import words
from .locate import Statement, Tree
from .names import is_own_variable, iterated, read_later


def part_is_unseen(tree: Tree, statement: Statement, node: cst.Name, reshaped: bool) -> bool:
    """Whether this one expression uses a part that a loop over the parts of a tensor takes:
    `[h.squeeze_(0) for h in x.split(1)]`.

    A write to the part must not be needed in the tensor; `reshaped` says that no value is written.
    """
    for around in tree.ancestors(node):
        parts = _taken(around, node.value)
        if isinstance(around, cst.BaseComp) and parts is not None:
            bound = {id(n) for f in clauses(around) for n in walk(f.target)}
            alone = len(_uses(around, node.value, bound)) == 1
            return alone and not _is_needed(tree, statement, parts, reshaped)
        if isinstance(around, cst.For) and isinstance(parts, cst.Call):
            alone = len(_uses(statement, node.value)) == 1
            return alone and reshaped and not read_later(tree, statement, node.value)
    return False


def _uses(inside: cst.CSTNode, name: str, bound: Collection[int] = ()) -> list[cst.Name]:
    found = (n for n in walk(inside) if isinstance(n, cst.Name) and n.value == name)
    return [n for n in found if id(n) not in bound]


def _taken(around: cst.CSTNode, name: str) -> cst.Call | cst.Name | None:
    """What a name of a loop stands for the elements of: `x.split(1)`, or a list."""
    for clause in clauses(around):
        leaves = unpacked(clause.target)
        if any(isinstance(t, cst.Name) and t.value == name for t in leaves):
            assert isinstance(clause.target, cst.BaseExpression)
            made = iterated(clause.iter, clause.target, name)
            if isinstance(made, cst.Name):
                return made
            return made if isinstance(made, cst.Call) and _last_name(made) in _PARTS else None
    return None


def _last_name(call: cst.Call) -> str:
    method = call.func if isinstance(call.func, cst.Attribute) else None
    return method.attr.value if method is not None else dotted(call.func) or ""


_PARTS = words("unbind chunk split split_with_sizes tensor_split hsplit vsplit dsplit")


def _is_needed(
    tree: Tree, statement: Statement, parts: cst.Call | cst.Name, reshaped: bool
) -> bool:
    """Whether someone may look after the statement at the list, or at the tensor it is made of."""
    if isinstance(parts, cst.Name):
        return not reshaped or _is_read_later(tree, statement, parts)
    method = parts.func if isinstance(parts.func, cst.Attribute) else None
    function = method is not None and dotted(method.value) == "torch"
    given = parts.args[0].value if function and parts.args else getattr(method, "value", None)
    if reshaped or isinstance(given, (cst.Call, cst.BinaryOperation)):
        return False
    return not isinstance(given, cst.Name) or _is_read_later(tree, statement, given)


def _is_read_later(tree: Tree, statement: Statement, name: cst.Name) -> bool:
    own = is_own_variable(tree, statement, name.value)
    return not own or read_later(tree, statement, name.value)
