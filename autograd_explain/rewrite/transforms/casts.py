"""Casts, device copies and arithmetic that hide the leaf, put before `requires_grad`."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ...model import Place
from ...program import Program
from ..analysis.inplace_names import words
from ..engine.cst_tools import (
    dotted,
    expression,
    find,
    keyword,
    literal_bool,
    method,
    method_name,
    same,
    targets,
    walk,
    with_keyword,
    without,
)
from ..engine.draft import Draft, only
from ..engine.imports import Imports, imports_at
from ..engine.proposal import Edits
from ..engine.tree import Statement, Tree, tree_at
from .training_step import is_parameter

#: Constructors that take dtype= and device= and give the same values with them.
_EXACT = words("tensor zeros ones empty full arange linspace logspace eye")
#: Random ones draw other numbers in another dtype or on another device.
_RANDOM = words("rand randn normal randint rand_like randn_like")
_LIKE = words("zeros_like ones_like empty_like full_like from_numpy as_tensor")
_DTYPES = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
    "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip
_SHAPES = words(
    "reshape view t transpose permute flatten squeeze unsqueeze repeat expand clone contiguous "
    "mul add sub div neg abs exp log sqrt pow clamp to cuda cpu type sigmoid tanh mm matmul"
) | set(_DTYPES)


@dataclass(frozen=True, eq=False)
class _Leaf:
    """A call that makes a leaf, and how it says so."""

    call: cst.Call
    wrapped: bool = False  #: nn.Parameter(value) instead of requires_grad=True

    def plain(self) -> cst.BaseExpression:
        """The same values without a gradient."""
        flag = keyword(self.call, "requires_grad")
        if self.wrapped:
            return self.call.args[0].value
        return self.call if flag is None else without(self.call, flag)

    def of(self, value: cst.BaseExpression) -> cst.BaseExpression:
        """A leaf of another value, made in the same way."""
        if not self.wrapped:
            return method(value, "requires_grad_()")
        call = self.call.with_changes(args=[self.call.args[0].with_changes(value=value)])
        return call.with_changes(lpar=[], rpar=[])


def dtype_in_constructor(program: Program, place: Place) -> Edits | None:
    """Let the constructor make the right dtype or device, so that the leaf itself keeps the name.

    `torch.tensor(v, requires_grad=True).float()` -> `torch.tensor(v, dtype=torch.float32,
    requires_grad=True)`; also `.to(device)`, `.cuda()` and the form in two statements.  Where the
    constructor cannot (random numbers would differ, the argument of `.to` is unclear), the cast
    comes first and `requires_grad_()` last.
    """
    tree, imports = tree_at(program, place), imports_at(program, place)
    ways = (_one_statement, _two_statements)
    return only(way(tree, imports, s) for s in tree.candidates(place) for way in ways)


def requires_grad_last(program: Program, place: Place) -> Edits | None:
    """Compute first, ask for the gradient last, so that the result is the leaf.

    `torch.randn(n, requires_grad=True) * 0.1` -> `(torch.randn(n) * 0.1).requires_grad_()` and
    `nn.Parameter(torch.randn(n)) * s` -> `nn.Parameter(torch.randn(n) * s)`.
    """
    tree, imports = tree_at(program, place), imports_at(program, place)
    values = (v for s in tree.candidates(place) if (v := _value(s)) is not None)
    leaves = ((v, leaf) for v in values if (leaf := _only_leaf(imports, v)) is not None)
    return only(
        _leaf_last(tree, value, leaf)
        for value, leaf in leaves
        if value is not leaf.call and _is_arithmetic_on(tree, value, leaf.call)
    )


def _value(statement: Statement) -> cst.BaseExpression | None:
    if isinstance(statement, (cst.Assign, cst.AnnAssign, cst.Return)):
        return statement.value
    return None


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


def _is_arithmetic_on(tree: Tree, value: cst.BaseExpression, leaf: cst.Call) -> bool:
    """Whether everything from the leaf up to the value only computes with it."""
    node: cst.CSTNode = leaf
    while node is not value:
        parent = tree.parents[node]
        if isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation)) or (
            isinstance(parent, cst.Attribute) and parent.value is node and parent.attr.value == "T"
        ):
            node = parent
        elif isinstance(parent, cst.Attribute) and parent.value is node:
            call = tree.parents[parent]
            if not isinstance(call, cst.Call) or call.func is not parent:
                return False
            if parent.attr.value not in _SHAPES:
                return False
            node = call
        elif isinstance(parent, cst.Subscript) and parent.value is node:
            node = parent
        else:
            return False
    return True


def _leaf_last(tree: Tree, value: cst.BaseExpression, leaf: _Leaf) -> Draft:
    inner = value.deep_replace(leaf.call, leaf.plain())
    assert isinstance(inner, cst.BaseExpression)
    return Draft(tree).replace(value, leaf.of(inner))


def _one_statement(tree: Tree, imports: Imports, statement: Statement) -> Draft | None:
    """The cast stands behind the constructor, in one expression."""
    value = _value(statement)
    leaf = None if value is None else _only_leaf(imports, value)
    if value is None or leaf is None:
        return None
    casts = _casts_behind(tree, leaf.call)
    if not casts:
        return None
    made = None if leaf.wrapped else _constructed(imports, leaf.call, casts)
    if made is None:
        return _leaf_last(tree, casts[-1], leaf)
    return Draft(tree).replace(casts[-1], made)


def _casts_behind(tree: Tree, call: cst.Call) -> list[cst.Call]:
    """The casts applied to a call, innermost first."""
    found: list[cst.Call] = []
    node: cst.CSTNode = call
    while True:
        attribute = tree.parents[node]
        outer = tree.parents.get(attribute)
        if not isinstance(attribute, cst.Attribute) or not isinstance(outer, cst.Call):
            return found
        if attribute.value is not node or not _is_cast(outer):
            return found
        found.append(outer)
        node = outer


def _is_cast(call: cst.Call) -> bool:
    return method_name(call) in {"to", "cuda", "cpu", "type"} | set(_DTYPES)


def _constructed(
    imports: Imports, call: cst.Call, casts: list[cst.Call]
) -> cst.BaseExpression | None:
    """The constructor with the casts as arguments; None where it cannot take them."""
    name = imports.full(dotted(call.func)).rpartition(".")[2]
    if name not in _EXACT:
        return None
    for cast in casts:
        options = _options(imports, cast)
        if options is None:
            return None
        for key, value in options.items():
            call = with_keyword(call, key, value)
    return call


def _options(imports: Imports, cast: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """A cast as constructor arguments; None where its argument is unclear."""
    assert isinstance(cast.func, cst.Attribute)
    name, torch = cast.func.attr.value, imports.local("torch")
    given = [a for a in cast.args if not _harmless(a)]
    if name in _DTYPES and not given:
        return None if torch is None else {"dtype": expression(f"{torch}.{_DTYPES[name]}")}
    if name == "cpu" and not given:
        return {"device": expression('"cpu"')}
    if name == "cuda" and len(given) <= 1:
        return {"device": given[0].value if given else expression('"cuda"')}
    if name not in {"to", "type"}:
        return None
    options: dict[str, cst.BaseExpression] = {}
    for arg in given:
        key = arg.keyword.value if arg.keyword is not None else _kind(imports, arg.value)
        if key not in {"dtype", "device"} or key in options or arg.star:
            return None
        options[key] = arg.value
    return options or None


def _harmless(arg: cst.Arg) -> bool:
    return arg.keyword is not None and arg.keyword.value in {
        "non_blocking",
        "copy",
        "memory_format",
    }


def _kind(imports: Imports, node: cst.BaseExpression) -> str | None:
    """Whether an argument of `.to` is a dtype or a device, as far as its text tells."""
    path = dotted(node) or ""
    if isinstance(node, cst.BaseString):
        return "device"
    if isinstance(node, cst.Call) and imports.full(dotted(node.func)) == "torch.device":
        return "device"
    full, last = imports.full(path), path.rpartition(".")[2].lower()
    if full.startswith("torch."):
        return "dtype" if _is_dtype(full.removeprefix("torch.")) else None
    if last.endswith("device") or last in {"dev", "cuda", "gpu"}:
        return "device"
    return "dtype" if last.endswith("dtype") else None


def _is_dtype(name: str) -> bool:
    import torch

    return isinstance(getattr(torch, name, None), torch.dtype)


def _two_statements(tree: Tree, imports: Imports, statement: Statement) -> Draft | None:
    """`leaf = torch.tensor(v, requires_grad=True)` … `xs[k] = leaf.float()`."""
    value = _value(statement)
    casts = [] if value is None else _cast_chain(value)
    if not casts or not isinstance(statement, cst.Assign):
        return None
    assert isinstance(casts[0].func, cst.Attribute)
    name = casts[0].func.value
    if not isinstance(name, cst.Name):
        return None
    made = _made_before(tree, imports, statement, name.value)
    if made is None or _used_elsewhere(tree, statement, name.value, made[0]):
        return None
    leaf = made[1]
    draft = Draft(tree)
    constructed = None if leaf.wrapped else _constructed(imports, leaf.call, casts)
    if constructed is not None:
        draft.replace(leaf.call, constructed)
        if len(statement.targets) == 1 and same(tree, targets(statement)[0], name.value):
            draft.remove(statement)
        else:
            draft.replace(casts[-1], name)
    else:
        draft.replace(leaf.call, leaf.plain()).replace(casts[-1], leaf.of(casts[-1]))
    return draft


def _cast_chain(value: cst.BaseExpression) -> list[cst.Call]:
    """`leaf.float().cuda()` as its casts, innermost first; [] for anything else."""
    found: list[cst.Call] = []
    node = value
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and _is_cast(node):
        found.insert(0, node)
        node = node.func.value
    return found if isinstance(node, cst.Name) else []


def _made_before(
    tree: Tree, imports: Imports, statement: Statement, name: str
) -> tuple[Statement, _Leaf] | None:
    """The assignment of a leaf to the name, before the statement in the same block."""
    inside, at = tree.siblings(statement)
    for earlier in reversed(inside[:at]):
        if not isinstance(earlier, cst.Assign) or len(earlier.targets) != 1:
            continue
        if same(tree, earlier.targets[0].target, name):
            leaf = _leaf(imports, earlier.value)
            return None if leaf is None else (earlier, leaf)
    return None


def _used_elsewhere(tree: Tree, cast: Statement, name: str, definition: Statement) -> bool:
    """Whether the leaf is read under its old name too: another dtype would show there."""
    if isinstance(cast, cst.Assign) and any(same(tree, t, name) for t in targets(cast)):
        first, last = tree.start(definition), tree.start(cast)
        readers = [s for s in tree.statements if first < tree.start(s) < last]
    else:
        readers = list(tree.statements)
    scope = tree.scope_of(cast)
    return any(s is not cast and tree.scope_of(s) is scope and find(tree, s, name) for s in readers)
