"""Parts of a tensor in a loop or a comprehension, and who else may look at them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from ..analysis.effects import is_own_variable, iterated, read_later
from ..analysis.inplace_names import words
from ..analysis.inplace_writes import base_of
from ..engine.cst_tools import clauses, dotted, targets, unpacked, walk
from ..engine.tree import Statement, Tree


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


_KEEPING = words("append add insert extend setdefault update put")
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
    given = given if given is None or reshaped else base_of(given)
    if reshaped or isinstance(given, (cst.Call, cst.BinaryOperation)):
        return False
    if not isinstance(given, cst.Name) or _is_read_later(tree, statement, given):
        return True
    return _has_other_names(tree, statement, given)


def _has_other_names(tree: Tree, statement: Statement, tensor: cst.Name) -> bool:
    """Whether something else looks into the memory of a local tensor: a view of it or a container
    has a name, or it is one itself (`h = x.view(2, 4)`)."""
    for node in walk(tree.scope_of(statement)):
        if any(_holds(value, tensor.value) for value in _named_or_kept(node)):
            return True
        if isinstance(node, (cst.Assign, cst.AnnAssign)) and node.value is not None:
            if any(dotted(t) == tensor.value for t in targets(node)) and not _is_fresh(node.value):
                return True
    return False


def _named_or_kept(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """The values that an assignment names or a call puts into a container."""
    if isinstance(node, (cst.Assign, cst.AnnAssign, cst.NamedExpr)) and node.value is not None:
        yield node.value
    elif isinstance(node, cst.Call) and _last_name(node) in _KEEPING:
        yield from (argument.value for argument in node.args)


def _holds(value: cst.BaseExpression, name: str) -> bool:
    """Whether a value is the tensor, a view of it, or a literal container with one in it."""
    if isinstance(value, (cst.Tuple, cst.List, cst.Set, cst.Dict)):
        return any(_holds(e.value, name) for e in value.elements if hasattr(e, "value"))
    return dotted(base_of(value)) == name


def _is_fresh(value: cst.BaseExpression) -> bool:
    return isinstance(base_of(value), (cst.Call, cst.BinaryOperation, cst.UnaryOperation))


def _is_read_later(tree: Tree, statement: Statement, name: cst.Name) -> bool:
    own = is_own_variable(tree, statement, name.value)
    return not own or read_later(tree, statement, name.value)
