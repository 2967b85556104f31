"""Casts, device copies and arithmetic that hide the leaf, put before `requires_grad`."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ...model import Place
from ...program import Program
from ..analysis.inplace_names import words
from ..engine.cst_tools import (
    called_name,
    called_on,
    dotted,
    keyword,
    literal_bool,
    method,
    method_name,
    walk,
    whole_value,
    without,
)
from ..engine.draft import Draft, only
from ..engine.imports import Imports, imports_at
from ..engine.proposal import Edits
from ..engine.tree import Tree, tree_at
from .training_step import is_parameter

_CASTS = words("to cuda cpu type float double half bfloat16 cfloat cdouble")
_SHAPES = _CASTS | words(
    "reshape view t transpose permute flatten squeeze unsqueeze repeat expand clone contiguous "
    "mul add sub div neg abs exp log sqrt pow clamp sigmoid tanh mm matmul"
)


@dataclass(frozen=True, eq=False)
class _Leaf:
    """A call that makes a leaf, and how it says so."""

    call: cst.Call
    wrapped: bool = False  #: nn.Parameter(value) instead of requires_grad=True

    def of(self, value: cst.BaseExpression) -> cst.BaseExpression:
        """A leaf of another value, made in the same way."""
        if not self.wrapped:
            return method(value, "requires_grad_()")
        call = self.call.with_changes(args=[self.call.args[0].with_changes(value=value)])
        return call.with_changes(lpar=[], rpar=[])


def requires_grad_last(program: Program, place: Place) -> Edits | None:
    """Compute first, ask for the gradient last, so that the result is the leaf.

    `torch.randn(n, requires_grad=True) * 0.1` -> `(torch.randn(n) * 0.1).requires_grad_()`,
    `torch.tensor(v, requires_grad=True).cuda()` -> `torch.tensor(v).cuda().requires_grad_()`
    and `nn.Parameter(torch.randn(n)) * s` -> `nn.Parameter(torch.randn(n) * s)`.
    """
    tree, imports = tree_at(program, place), imports_at(program, place)
    values = (v for s in tree.candidates(place) if (v := whole_value(s)) is not None)
    leaves = ((v, leaf) for v in values if (leaf := _only_leaf(imports, v)) is not None)
    return only(
        _leaf_last(tree, result, leaf)
        for value, leaf in leaves
        if (result := _computed_of(tree, value, leaf.call)) is not leaf.call
    )


def flag_removed(program: Program, place: Place | None) -> Edits | None:
    """The call at a place without what asks for a gradient."""
    tree = tree_at(program, place)
    calls = [node for node in tree.at(place) if isinstance(node, cst.Call)][:1]
    return only(Draft(tree).replace(call, _plain(call)) for call in calls)


def _plain(call: cst.Call) -> cst.BaseExpression:
    """The same values without a gradient: `torch.rand(n)` of `torch.rand(n, requires_grad=True)`,
    `x` of `nn.Parameter(x)` and of `x.requires_grad_()`."""
    flag = keyword(call, "requires_grad")
    if flag is not None:
        return without(call, flag)
    wrapped = called_name(call) == "Parameter" and len(call.args) == 1
    return call.args[0].value if wrapped else called_on(call, "requires_grad_") or call


def _leaf(imports: Imports, node: cst.CSTNode) -> _Leaf | None:
    """`torch.tensor(…, requires_grad=True)` or `nn.Parameter(…)`."""
    if not isinstance(node, cst.Call):
        return None
    if is_parameter(imports, node):
        plain = len(node.args) == 1 and node.args[0].keyword is None and not node.args[0].star
        return _Leaf(node, wrapped=True) if plain else None
    full, flag = imports.full(dotted(node.func)), keyword(node, "requires_grad")
    known = full.startswith("torch.") and full.count(".") == 1
    asked = flag is not None and literal_bool(flag.value) is True
    return _Leaf(node) if asked and (known or full == "torch.autograd.Variable") else None


def _only_leaf(imports: Imports, value: cst.BaseExpression) -> _Leaf | None:
    found = [leaf for node in walk(value) if (leaf := _leaf(imports, node)) is not None]
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


def _leaf_last(tree: Tree, value: cst.BaseExpression, leaf: _Leaf) -> Draft:
    inner = value.deep_replace(leaf.call, _plain(leaf.call))
    assert isinstance(inner, cst.BaseExpression)
    return Draft(tree).replace(value, leaf.of(inner))
