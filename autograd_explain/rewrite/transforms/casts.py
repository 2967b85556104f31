"""Casts, device copies and arithmetic that hide the leaf, put before `requires_grad`."""

from __future__ import annotations

from functools import partial

import libcst as cst

from ...model import Edits, Finding, Place, Relation, What
from ...program import Program
from ..analysis.inplace_writes import words
from ..engine.cst_tools import (
    bare,
    called_name,
    called_on,
    dotted,
    expression,
    keyword,
    literal_bool,
    method,
    method_name,
    walk,
    whole_value,
    without,
)
from ..engine.draft import Draft, Drafts, only
from ..engine.imports import Imports
from ..engine.tree import Tree, tree_at
from .training_step import is_parameter

_CASTS = words("to cuda cpu type float double half bfloat16 cfloat cdouble")
_SHAPES = _CASTS | words(
    "reshape view t transpose permute flatten squeeze unsqueeze repeat expand clone contiguous "
    "mul add sub div neg abs exp log sqrt pow clamp sigmoid tanh mm matmul"
)


def requires_grad_last(program: Program, place: Place) -> Edits | None:
    """Compute first, ask for the gradient last, so that the result is the leaf.

    `torch.randn(n, requires_grad=True) * 0.1` -> `(torch.randn(n) * 0.1).requires_grad_()`,
    `torch.tensor(v, requires_grad=True).cuda()` -> `torch.tensor(v).cuda().requires_grad_()`
    and `nn.Parameter(torch.randn(n)) * s` -> `nn.Parameter(torch.randn(n) * s)`.
    """
    tree = tree_at(program, place)
    values = (v for s in tree.candidates(place) if (v := whole_value(s)) is not None)
    leaves = ((v, leaf) for v in values if (leaf := _only_leaf(tree.imports, v)) is not None)
    return only(
        Draft(tree).replace(leaf, without_flag(leaf)).change(result, partial(_like, leaf))
        for value, leaf in leaves
        if (result := _computed_of(tree, value, leaf)) is not leaf
    )


def flag_moved(program: Program, finding: Finding) -> Edits | None:
    """The leaf's constructor makes no leaf, but one is made in the same way of the computed result.

    None where the leaf is read elsewhere (the finding then has no event for it).
    """
    leaf = next((e.place for e in finding.events if e.relation is Relation.LEAF), None)
    result = finding.place(What.CAUSE)
    tree, other = tree_at(program, leaf), tree_at(program, result)
    call, value = tree.call(leaf), other.node(result)
    if call is None or value is None or without_flag(call) is call:
        return None
    drafts = Drafts()
    drafts[tree].replace(call, without_flag(call))
    drafts[other].change(value, partial(_like, call))
    return drafts.edits()


def without_flag(call: cst.Call) -> cst.BaseExpression:
    """The same values without a gradient: `torch.rand(n)` of `torch.rand(n, requires_grad=True)`,
    `x` of `nn.Parameter(x)` and of `x.requires_grad_()`."""
    flag = keyword(call, "requires_grad")
    if flag is not None:
        return without(call, flag)
    wrapped = called_name(call) == "Parameter" and len(call.args) == 1
    return call.args[0].value if wrapped else called_on(call, "requires_grad_") or call


def _like(call: cst.Call, value: cst.BaseExpression) -> cst.BaseExpression:
    """A leaf of another value, made as a call makes one."""
    if called_name(call) != "Parameter":
        return method(value, "requires_grad_()")
    return expression("{f}({x})", f=call.func, x=bare(value))


def _makes_leaf(imports: Imports, node: cst.Call) -> bool:
    """`torch.tensor(…, requires_grad=True)` or `nn.Parameter(…)`."""
    if is_parameter(imports, node):
        return len(node.args) == 1 and node.args[0].keyword is None and not node.args[0].star
    full, flag = imports.full(dotted(node.func)), keyword(node, "requires_grad")
    known = full.startswith("torch.") and full.count(".") == 1
    asked = flag is not None and literal_bool(flag.value) is True
    return asked and (known or full == "torch.autograd.Variable")


def _only_leaf(imports: Imports, value: cst.BaseExpression) -> cst.Call | None:
    calls = (node for node in walk(value) if isinstance(node, cst.Call))
    found = [call for call in calls if _makes_leaf(imports, call)]
    return found[0] if len(found) == 1 else None


def _computed_of(
    tree: Tree, value: cst.BaseExpression, leaf: cst.BaseExpression
) -> cst.BaseExpression:
    """The whole value, where everything from the leaf up to it only computes with the leaf; else
    the last cast of it."""
    node = cast = leaf
    while node is not value:
        around = _arithmetic_on(tree, node)
        if around is None:
            return cast
        node = around
        cast = node if method_name(node) in _CASTS else cast
    return value


def _arithmetic_on(tree: Tree, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The expression around another that only computes with it."""
    parent = tree.parents[node]
    if isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation)):
        return parent
    if not isinstance(parent, (cst.Attribute, cst.Subscript)) or parent.value is not node:
        return None
    if isinstance(parent, cst.Subscript) or parent.attr.value == "T":
        return parent
    call = tree.parents[parent]
    called = isinstance(call, cst.Call) and call.func is parent and method_name(call) in _SHAPES
    return call if called and isinstance(call, cst.Call) else None
