"""`x.add_(1)` -> `x = x.add(1)`: the same value in a new tensor, under the old name."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from ..model import Edit, Place
from ..program import Program
from .code import find, head, repeatable, right_operand, same, stores, targets, walk
from .draft import Draft
from .imports import imports_at
from .inplace_writes import InplaceCall, base_of, inplace_calls, is_view, without_data
from .locate import Statement, Tree, tree_at
from .names import can_rebind, is_own_local, read_later

_BINARY: dict[type[cst.BaseAugOp], Callable[..., cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.MatrixMultiplyAssign: cst.MatrixMultiply,
    cst.DivideAssign: cst.Divide,
    cst.FloorDivideAssign: cst.FloorDivide,
    cst.ModuloAssign: cst.Modulo,
    cst.PowerAssign: cst.Power,
    cst.BitAndAssign: cst.BitAnd,
    cst.BitOrAssign: cst.BitOr,
    cst.BitXorAssign: cst.BitXor,
    cst.LeftShiftAssign: cst.LeftShift,
    cst.RightShiftAssign: cst.RightShift,
}
_ONCE_AND_FIRST = (cst.Lambda, cst.BaseComp, cst.BooleanOperation, cst.IfExp)


def out_of_place(
    program: Program, place: Place, target: str | None = None
) -> tuple[Edit, ...] | None:
    """Make the in-place operation at `place` compute a new tensor and give it the old name.

    Knows augmented assignments, methods and chains of methods (`x.mul_(a).add_(b)`), functions
    (`torch.relu_(x)`, `F.relu(x, inplace=True)`, `nn.init.ones_(x)`) and `out=`.  `target` is the
    written tensor as the user writes it and chooses among several writes; `xs[0]` says that xs is
    a container of tensors.  None for writes to parts of a tensor (see `functional_write`) and
    where the new tensor would not reach those who read the old one.
    """
    tree = tree_at(program, place)
    if tree is None:
        return None
    imports = imports_at(program, place)
    drafts: list[Draft] = []
    for statement in tree.candidates(place):
        if isinstance(statement, cst.AugAssign) and _meant(tree, statement.target, target):
            drafts.append(_plain_operator(tree, statement, target))
        for call in inplace_calls(tree, imports, statement):
            if _meant(tree, call.target, target):
                drafts.append(_new_value(tree, statement, call, target))
    return drafts[0].edits() if len(drafts) == 1 else None


def _meant(tree: Tree, written: cst.BaseExpression, target: str | None) -> bool:
    return (
        target is None or same(tree, written, target) or same(tree, without_data(written), target)
    )


def _plain_operator(tree: Tree, statement: cst.AugAssign, target: str | None) -> Draft:
    """`x += 1` -> `x = x + 1`."""
    draft, written = Draft(tree), without_data(statement.target)
    operator = _BINARY[type(statement.operator)](
        whitespace_before=cst.SimpleWhitespace(" "), whitespace_after=cst.SimpleWhitespace(" ")
    )
    loose = isinstance(statement.value, (cst.Tuple, cst.Yield)) and not statement.value.lpar
    if loose or not _assignable(tree, statement, written, target):
        return draft
    value = cst.BinaryOperation(written, operator, right_operand(statement.value, operator))
    draft.instead(statement, [_assignment(written, value)])
    return draft


def _new_value(tree: Tree, statement: Statement, call: InplaceCall, target: str | None) -> Draft:
    draft = Draft(tree)
    whole = getattr(statement, "value", None) is call.node
    if whole and isinstance(statement, cst.Expr):
        if _assignable(tree, statement, call.target, target):
            draft.instead(statement, [_assignment(call.target, call.value)])
        return draft
    if whole and _assigned_back(tree, statement, call.target):
        draft.replace(call.node, call.value)
        return draft
    if _is_temporary(tree, statement, call.target):
        draft.replace(call.node, call.value)
        return draft
    if _first_in_statement(tree, statement, call) and _assignable(
        tree, statement, call.target, target
    ):
        draft.before(statement, [_assignment(call.target, call.value)])
        draft.replace(call.node, call.target)
    return draft


def _assignment(target: cst.BaseExpression, value: cst.BaseExpression) -> cst.Assign:
    assert isinstance(target, cst.BaseAssignTargetExpression)
    return cst.Assign([cst.AssignTarget(target)], value)


def _assignable(
    tree: Tree, statement: Statement, written: cst.BaseExpression, target: str | None
) -> bool:
    """Whether `written = …` is possible, evaluates nothing twice and reaches every reader."""
    if isinstance(written, cst.Tuple):
        return all(_assignable(tree, statement, e.value, target) for e in written.elements)
    if not isinstance(written, (cst.Name, cst.Attribute, cst.Subscript)):
        return False
    if isinstance(written, cst.Subscript) and not _in_container(tree, written, target):
        return False
    if isinstance(written, cst.Attribute) and is_view(written):
        return False
    return repeatable(written) and can_rebind(tree, statement, written)


def _in_container(tree: Tree, written: cst.Subscript, target: str | None) -> bool:
    """Whether `xs[i]` is a whole tensor in a list or dict, and not a part of the tensor xs."""
    if same(tree, written, target):
        return True
    index = [element.slice for element in written.slice]
    if len(index) != 1 or not isinstance(index[0], cst.Index):
        return False
    return isinstance(index[0].value, (cst.SimpleString, cst.FormattedString))


def _assigned_back(tree: Tree, statement: Statement, target: cst.BaseExpression) -> bool:
    """`x = x.add_(1)`: the name already gets the new value."""
    code = tree.code(target)
    single = isinstance(statement, cst.Assign) and len(statement.targets) == 1
    return single and same(tree, targets(statement)[0], code)


def _is_temporary(tree: Tree, statement: Statement, target: cst.BaseExpression) -> bool:
    """Whether nobody can look at the written tensor once the statement is done."""
    base = base_of(target)
    if isinstance(base, cst.Call):
        return not is_view(target) or base is not target
    if isinstance(base, cst.Name) and is_own_local(tree, statement, base):
        rebound = any(same(tree, t, base.value) for t in targets(statement))
        return rebound or not read_later(tree, statement, base.value)
    return isinstance(base, (cst.BinaryOperation, cst.UnaryOperation))


def _first_in_statement(tree: Tree, statement: Statement, call: InplaceCall) -> bool:
    """Whether the write may as well happen on a line before the statement."""
    heads_run_once = (cst.BaseSmallStatement, cst.If, cst.For, cst.With)
    if not isinstance(statement, heads_run_once) or tree.block_of(statement) is None:
        return False
    for ancestor in tree.ancestors(call.node):
        if ancestor is statement:
            break
        if isinstance(ancestor, _ONCE_AND_FIRST):
            return False
    code = tree.code(call.target)
    inside = set(map(id, walk(call.node)))
    others = [n for n in find(tree, statement, code) if id(n) not in inside]
    written = {id(n) for n in stores(statement)}
    before = [n for n in head(statement) if isinstance(n, cst.Call) and id(n) not in inside]
    earlier = [
        c for c in before if tree.start(c) < tree.start(call.node) and not tree.inside(call.node, c)
    ]
    return not others and not earlier and id(call.target) not in written
