"""The in-place writes a statement makes, as far as its text shows them, and what torch's in-place
operations are called when they make a new tensor instead.

Most are the same name without the underscore.  This file holds the others; the test compares every
method of torch.Tensor that ends in an underscore with what is said here.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass, replace
from functools import lru_cache

import libcst as cst

from ..engine.cst_tools import (
    bare,
    called_on,
    dotted,
    expression,
    head,
    is_number,
    keyword,
    literal_bool,
    method,
    positional,
    single_targets,
    targets,
    walk,
    without,
)
from ..engine.imports import Imports
from ..engine.tree import Statement, Tree


def words(text: str) -> frozenset[str]:
    """A set of names written as one text."""
    return frozenset(text.split())


#: No out-of-place method exists: run the in-place one on a fresh tensor.  These overwrite every
#: element without reading the old ones, so an empty tensor will do …
FILLS_ALL = words(
    "normal_ uniform_ random_ cauchy_ exponential_ geometric_ log_normal_ bernoulli_ copy_"
)
#: … and these need the old values.
READS_OLD = words("apply_ map_ map2_ fill_diagonal_")
#: Functions that make what these do, where nothing is said of the values.
_LIKE = {"zero_": "zeros_like", "normal_": "randn_like", "uniform_": "rand_like"}
#: The out-of-place form gives a bool tensor, the in-place one keeps the dtype.
COMPARES = words(
    "eq_ ne_ lt_ le_ gt_ ge_ equal_ not_equal_ less_ less_equal_ greater_ greater_equal_ "
    "logical_and_ logical_or_ logical_xor_ logical_not_"
)
#: Not writes of values, or without any functional meaning.
NOT_WRITES = words(
    "requires_grad_ share_memory_ set_ resize_ resize_as_ resize_as_sparse_ sparse_resize_ "
    "sparse_resize_and_clear_ rename_ coalesced_ as_strided_ as_strided_scatter_"
)
#: They change shape or graph, not values: the new name is right, a saved value is not hurt.
RESHAPES = words("squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ detach_ moveaxis_ permute_")
#: Methods whose result shares memory with the tensor (always, or as a rule).
VIEWS = words(
    "view view_as reshape flatten t transpose permute movedim moveaxis swapaxes swapdims squeeze "
    "unsqueeze expand expand_as narrow select diagonal unfold unbind split chunk tensor_split "
    "hsplit vsplit as_strided detach numpy real imag contiguous T mT H mH data"
)


def is_inplace_method(name: str) -> bool:
    """Whether `x.name(…)` writes values of x."""
    return name.endswith("_") and name in _tensor_methods() and name not in NOT_WRITES


def out_of_place_name(name: str) -> str | None:
    """`add_` -> `add`; None where the same name without the underscore is missing or different."""
    short = name[:-1]
    if name in FILLS_ALL | READS_OLD | NOT_WRITES or short not in _tensor_methods():
        return None
    return short


@lru_cache(maxsize=256)
def inplace_position(full: str) -> int | None:
    """Where `inplace` stands among the arguments of a function or a module of torch.nn's."""
    import torch

    owner = torch.nn.functional if full.startswith("torch.nn.functional.") else torch.nn
    found = getattr(owner, full.rpartition(".")[2], None) if full.startswith("torch.nn.") else None
    try:
        names = list(inspect.signature(found).parameters) if callable(found) else []
    except ValueError:  # of C
        return None
    return names.index("inplace") if "inplace" in names else None


@lru_cache(maxsize=1)
def _tensor_methods() -> frozenset[str]:
    import torch

    return frozenset(n for n in dir(torch.Tensor) if not n.startswith("_"))


@dataclass(frozen=True, eq=False)
class InplaceCall:
    """An expression that overwrites `target` and has its new value: `x.mul_(2).add_(y)`.

    `value` computes that new value without writing.  `hidden` says that the write went through
    `.data` or `.detach()`.
    """

    node: cst.Call
    target: cst.BaseExpression
    value: cst.BaseExpression
    hidden: bool = False


def inplace_calls(tree: Tree, statement: Statement) -> list[InplaceCall]:
    """Every in-place call in a statement (in a compound one: in its head), outermost first."""
    found: list[InplaceCall] = []
    for node in head(statement):
        if not isinstance(node, cst.Call) or _continued(tree, node):
            continue
        call = _method_chain(tree.imports, node) or _function(tree.imports, node)
        if call is not None:
            found.append(call)
    return found


def is_given_anew(tree: Tree, block: cst.CSTNode, name: str) -> bool:
    """Whether a block gives a name another tensor: `x = x.exp()`, not `x = x.exp_()`."""
    for node in walk(block):
        bound = [node.target] if isinstance(node, cst.NamedExpr) else single_targets(node)
        if name in map(dotted, bound) and not isinstance(node, cst.AugAssign):
            if not _is_written_back(tree, node, name):
                return True
    return False


def _is_written_back(tree: Tree, node: cst.CSTNode, name: str) -> bool:
    """`x = x.exp_()`"""
    if not isinstance(node, cst.Assign) or len(node.targets) != 1:
        return False
    calls = inplace_calls(tree, node)
    return any(c.node is node.value and dotted(c.target) == name for c in calls)


def is_view(node: cst.BaseExpression) -> bool:
    """Whether an expression visibly gives other tensor memory a second name: `x[0]`, `x.T`."""
    if isinstance(node, cst.Call):
        return isinstance(node.func, cst.Attribute) and node.func.attr.value in VIEWS
    if isinstance(node, cst.Attribute):
        return node.attr.value in VIEWS
    return isinstance(node, cst.Subscript)


def base_of(node: cst.BaseExpression) -> cst.BaseExpression:
    """The tensor whose memory a chain of views belongs to: `x.view(-1)[0]` -> `x`."""
    while is_view(node):
        inner = node.func if isinstance(node, cst.Call) else node
        assert isinstance(inner, (cst.Attribute, cst.Subscript))
        node = inner.value
    return node


def without_data(node: cst.BaseExpression) -> cst.BaseExpression:
    """`x.data` and `x.detach()` -> `x`: the tensor that is really written."""
    if isinstance(node, cst.Attribute) and node.attr.value == "data":
        return node.value
    return called_on(node, "detach") or node


def without_ends(node: cst.BaseExpression) -> cst.BaseExpression:
    """`x` of `x.detach()`, of `x.data` and of both."""
    while (inner := without_data(node)) is not node:
        node = bare(inner)
    return node


def _link(imports: Imports, node: cst.CSTNode) -> bool:
    """Whether a node is `something.op_(…)`, and not a function such as `F.relu_(x)`."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    return is_inplace_method(node.func.attr.value) and not imports.full(dotted(node.func))


def _continued(tree: Tree, node: cst.Call) -> bool:
    """Whether the next in-place call of a chain starts from this one."""
    parent = tree.parents.get(node)
    return isinstance(parent, cst.Attribute) and _link(tree.imports, tree.parents[parent])


def _method_chain(imports: Imports, node: cst.Call) -> InplaceCall | None:
    if not _link(imports, node):
        return None
    links = [node]
    while _link(imports, inner := _receiver(links[-1])):
        assert isinstance(inner, cst.Call)
        links.append(inner)
    written = _receiver(links[-1])
    target = without_data(written)
    value: cst.BaseExpression | None = target
    for link in reversed(links):
        value = None if value is None else _functional(imports, link, value, target)
    return None if value is None else InplaceCall(node, target, value, written is not target)


def _receiver(call: cst.Call) -> cst.BaseExpression:
    assert isinstance(call.func, cst.Attribute)
    return call.func.value


def _functional(
    imports: Imports, link: cst.Call, value: cst.BaseExpression, target: cst.BaseExpression
) -> cst.BaseExpression | None:
    """`value.op_(…)` as an expression that makes a new tensor."""
    assert isinstance(link.func, cst.Attribute)
    name = link.func.attr.value
    torch = imports.local("torch")
    if name in {"zero_", "fill_"} | FILLS_ALL:
        return None if torch is None else _filled(torch, link, value)
    if name in READS_OLD:
        return link.with_changes(func=link.func.with_changes(value=method(value, "clone()")))
    short = out_of_place_name(name)
    if short is None:
        return None
    func = link.func.with_changes(value=value, attr=cst.Name(short))
    made: cst.BaseExpression = link.with_changes(func=func)
    if name in COMPARES:
        made = expression("{made}.to({x}.dtype)", made=made, x=target)
    return made


def _filled(torch: str, link: cst.Call, value: cst.BaseExpression) -> cst.BaseExpression:
    """The value of an operation that overwrites every element."""
    assert isinstance(link.func, cst.Attribute)
    name, args = link.func.attr.value, link.args
    if not args and name in _LIKE:
        return expression(f"{torch}.{_LIKE[name]}({{x}})", x=value)
    if name == "fill_" and len(args) == 1:
        like = "full_like" if is_number(args[0].value) else "fill"
        return expression(f"{torch}.{like}({{x}}, {{v}})", x=value, v=args[0].value)
    empty = expression(f"{torch}.empty_like({{x}})", x=value)
    return link.with_changes(func=link.func.with_changes(value=empty))


def _function(imports: Imports, node: cst.Call) -> InplaceCall | None:
    """`torch.relu_(x)`, `F.relu(x, inplace=True)`, `torch.add(a, b, out=x)`, `nn.init.ones_(x)`."""
    full = imports.full(dotted(node.func))
    if not full.startswith("torch."):
        return None
    name = full.rpartition(".")[2]
    out = keyword(node, "out")
    if out is not None:
        named = isinstance(out.value, (cst.Name, cst.Attribute, cst.Subscript, cst.Tuple))
        return InplaceCall(node, out.value, without(node, out)) if named else None
    written = _input(node)
    if written is None:
        return None
    target = without_data(written.value)
    hidden = target is not written.value
    if name.endswith("_") and not name.endswith("__"):
        call = _underscore(imports, node, full, written, target)
        return None if call is None else replace(call, hidden=hidden)
    flag = inplace_argument(node, full) if full.startswith("torch.nn.functional.") else None
    return None if flag is None else InplaceCall(node, target, without(node, flag), hidden)


def _input(node: cst.Call) -> cst.Arg | None:
    given = positional(node)
    return given[0] if given else keyword(node, "input") or keyword(node, "tensor")


def _underscore(
    imports: Imports, node: cst.Call, full: str, written: cst.Arg, target: cst.BaseExpression
) -> InplaceCall | None:
    module, _, name = full.rpartition(".")
    if module == "torch.nn.init":
        torch = imports.local("torch")
        if torch is None:
            return None
        empty = expression(f"{torch}.empty_like({{x}})", x=target)
        args = [a.with_changes(value=empty) if a is written else a for a in node.args]
        return InplaceCall(node, target, node.with_changes(args=args))
    if not hasattr(sys.modules.get(module), name[:-1]) or out_of_place_name(name) is None:
        return None
    known = imports.local(f"{module}.{name[:-1]}")
    args = [a.with_changes(value=target) if a is written else a for a in node.args]
    made = None if known is None else node.with_changes(func=expression(known), args=args)
    return None if made is None else InplaceCall(node, target, made)


def inplace_argument(call: cst.Call, full: str) -> cst.Arg | None:
    """The argument that switches `inplace` on in a call of `full`, by name or by position."""
    flag = keyword(call, "inplace")
    if flag is None:
        at, given = inplace_position(full), positional(call)
        flag = given[at] if at is not None and at < len(given) else None
    return None if flag is None or literal_bool(flag.value) is False else flag


def written_in(tree: Tree, statement: Statement) -> list[cst.BaseExpression]:
    """All that a statement itself writes in place: `x` of `x += 1`, `x[i]` of `x[i] = v`, and what
    its calls write."""
    given = targets(statement) if isinstance(statement, (cst.Assign, cst.AugAssign)) else []
    whole = isinstance(statement, cst.AugAssign)
    own = [target for target in given if whole or isinstance(target, cst.Subscript)]
    return [*own, *(call.target for call in inplace_calls(tree, statement))]
