"""The in-place write that a statement makes, as it is spelled, and the live tensor it writes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch

from ...forward_flow import is_simple
from ...incident import LiveFrame
from ...model import Place
from ...program import Program, Source
from ...program_index import ProgramIndex
from ..dataflow.safe_lookup import MISSING, in_frame
from ..shadow.torch_names import operation_of_module


class Form(str, Enum):
    """How a write is spelled; each needs its own rewrite."""

    AUGMENTED = "augmented"  #: `x += 1`
    ITEM = "item"  #: `x[mask] = 0`, `x[i] += 1`
    METHOD = "method"  #: `x.add_(1)`
    INIT = "init"  #: `nn.init.normal_(w)`, `w.normal_()`
    OUT = "out"  #: `torch.add(a, b, out=x)`
    CALL = "call"  #: another call that writes: an in-place module, `F.relu(x, inplace=True)`


#: Methods that put new values in without looking at the old ones.
FILLS = frozenset(
    {
        *("normal_", "uniform_", "zero_", "fill_", "copy_", "random_", "exponential_"),
        *("bernoulli_", "cauchy_", "geometric_", "log_normal_", "set_"),
        *("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"),
        *("orthogonal_", "trunc_normal_", "constant_", "ones_", "zeros_", "eye_"),
        *("dirac_", "sparse_"),
    }
)


def in_place_op(module: object) -> str:
    """torch's name of what an in-place module of its own does (`relu_`); "" for others."""
    if isinstance(module, torch.nn.Module) and type(module).__module__.startswith("torch."):
        return operation_of_module(module)
    return ""


@dataclass(frozen=True)
class SourceWrite:
    """An in-place write as spelled: the statement, the written expression, torch's name for it."""

    form: Form
    statement: ast.stmt
    target: ast.expr
    op: str

    @property
    def target_text(self) -> str:
        return ast.unparse(self.target)

    @property
    def value(self) -> ast.expr | None:
        return getattr(self.statement, "value", None)

    @property
    def is_part(self) -> bool:
        """Whether more is computed from the written tensor in the same statement:
        `y = (x * w.clamp_(0)).sum()`, and not `w = w.clamp_(0)`."""
        if self.form in (Form.AUGMENTED, Form.ITEM, Form.OUT):
            return False
        value = getattr(self.statement, "value", None)
        if not isinstance(value, ast.Call):
            return True
        if isinstance(value.func, ast.Attribute) and base_of(value) is not value:
            return ast.unparse(base_of(value)) != self.target_text
        return not value.args or ast.unparse(value.args[0]) != self.target_text


def write_at(program: Program, place: Place | None) -> SourceWrite | None:
    """The in-place write that the statement at a place makes, or None where it makes none."""
    statement = program.statement_at(place)
    return None if statement is None else write_of(statement)


def writes_in(index: ProgramIndex) -> Iterator[tuple[Source, SourceWrite]]:
    """The in-place writes that the program's statements may make."""
    for source, node in index.nodes(ast.stmt):
        write = write_of(node) if is_simple(node) else None
        if write is not None:
            yield source, write


def write_of(statement: ast.stmt) -> SourceWrite | None:
    if isinstance(statement, ast.AugAssign):
        return _augmented(statement)
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Subscript):
                return SourceWrite(Form.ITEM, statement, base_of(target), "copy_")
    return next(_calls(statement), None)


def _augmented(statement: ast.AugAssign) -> SourceWrite:
    op = _OPERATORS.get(type(statement.op), "copy_")
    if isinstance(statement.target, ast.Subscript):
        return SourceWrite(Form.ITEM, statement, base_of(statement.target), op)
    return SourceWrite(Form.AUGMENTED, statement, statement.target, op)


_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "add_",
    ast.Sub: "sub_",
    ast.Mult: "mul_",
    ast.Div: "div_",
    ast.Pow: "pow_",
    ast.FloorDiv: "floor_divide_",
    ast.Mod: "remainder_",
    ast.BitAnd: "bitwise_and_",
    ast.BitOr: "bitwise_or_",
}


def _calls(statement: ast.stmt) -> Iterator[SourceWrite]:
    for node in ast.walk(statement):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg == "out":
                yield SourceWrite(Form.OUT, statement, keyword.value, "out")
        if isinstance(node.func, ast.Attribute) and is_inplace_name(node.func.attr):
            yield _method(statement, node, node.func)
        elif node.args and _is_inplace_call(node):
            yield SourceWrite(Form.CALL, statement, node.args[0], ast.unparse(node.func))


def _is_inplace_call(call: ast.Call) -> bool:
    """`F.relu(x, inplace=True)`"""
    return any(
        k.arg == "inplace" and isinstance(k.value, ast.Constant) and k.value.value is True
        for k in call.keywords
    )


def _method(statement: ast.stmt, call: ast.Call, function: ast.Attribute) -> SourceWrite:
    owner = ast.unparse(function.value)
    if call.args and owner.split(".")[-1] in {"init", "torch", "F", "functional", "_foreach"}:
        form = Form.INIT if function.attr in FILLS else Form.CALL
        return SourceWrite(form, statement, call.args[0], function.attr)
    receiver = base_of(function.value)
    if isinstance(function.value, ast.Subscript):
        return SourceWrite(Form.ITEM, statement, receiver, function.attr)
    form = Form.INIT if function.attr in FILLS else Form.METHOD
    return SourceWrite(form, statement, receiver, function.attr)


def is_inplace_name(name: str) -> bool:
    """torch marks in-place methods by one trailing underscore; `requires_grad_` writes no value."""
    plain = name.endswith("_") and not name.startswith("_") and not name.endswith("__")
    return plain and name not in {"requires_grad_", "share_memory_", "detach_", "retain_grad_"}


def base_of(node: ast.expr) -> ast.expr:
    """`x` of `x[0][1]`, of `x[0].add_` and of chained in-place calls `x.mul_(2).add_(1)`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and is_inplace_name(node.func.attr)
        ):
            node = node.func.value
        else:
            return node


def written_tensor(write: SourceWrite, frame: LiveFrame) -> tuple[SourceWrite, Any]:
    """The write with the expression that is a tensor, and its live value (MISSING if unknown).

    `params[name] -= …` writes `params[name]` where `params` is a dict and `params` where it is a
    tensor: only the live objects tell.
    """
    statement = write.statement
    targets: list[ast.expr] = [write.target]
    if isinstance(statement, ast.AugAssign):
        targets = list(_layers(statement.target))
    elif isinstance(statement, ast.Assign) and write.form is Form.ITEM:
        subscript = next(t for t in statement.targets if isinstance(t, ast.Subscript))
        targets = list(_layers(subscript))[1:]
    elif write.form is Form.ITEM and isinstance(statement, ast.Expr):
        call = statement.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            targets = list(_layers(call.func.value))
    for i, target in enumerate(targets):
        value = in_frame(target, frame.frame)
        if isinstance(value, torch.Tensor):
            whole = i == 0 and not isinstance(statement, ast.Assign)
            form = _form_of_whole(write, frame) if whole else write.form
            return replace(write, target=target, form=form), value
    return write, MISSING


def _form_of_whole(write: SourceWrite, frame: LiveFrame) -> Form:
    """How a write to a whole tensor is spelled: `params[0].mul_(2)` writes no item.

    `w.copy_(h)` sets no starting value where `h` carries gradient.
    """
    if isinstance(write.statement, ast.AugAssign):
        return Form.AUGMENTED
    if write.form in (Form.OUT, Form.CALL) or write.op not in FILLS:
        return write.form if write.form in (Form.OUT, Form.CALL) else Form.METHOD
    call = write.value
    given = [in_frame(a, frame.frame) for a in call.args] if isinstance(call, ast.Call) else []
    carries = any(isinstance(g, torch.Tensor) and g.requires_grad for g in given[-1:])
    return Form.METHOD if write.op == "copy_" and carries else Form.INIT


def _layers(node: ast.expr) -> Iterator[ast.expr]:
    """`x[0][1]`, `x[0]`, `x`"""
    yield node
    while isinstance(node, ast.Subscript):
        node = node.value
        yield node
