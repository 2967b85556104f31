"""What cut the graph taken back: a call removed, a NumPy function replaced, a block left."""

from __future__ import annotations

import ast

import libcst as cst

from ..model import Edit, Place
from ..program import Program
from .code import dotted, expression, keyword, parenthesised, with_keyword
from .draft import Draft
from .imports import imports_at
from .locate import Tree, tree_at

Edits = tuple[Edit, ...]

#: NumPy functions that torch has under the same name, and those it calls otherwise.
_SAME = frozenset(
    "abs sqrt exp log log1p expm1 log2 log10 sin cos tan tanh sinh cosh arcsin arccos arctan sum mean "
    "std var prod cumsum maximum minimum where square sign dot matmul outer einsum stack reshape "
    "clip max min power floor ceil logaddexp linalg.norm linalg.inv linalg.det trace isnan".split()
)
_OTHER = {"concatenate": "cat", "absolute": "abs", "power": "pow", "transpose": "t"}
_KEYWORDS = {"axis": "dim", "keepdims": "keepdim", "ddof": "correction"}


def replace_expression(program: Program, place: Place, code: str) -> Edits | None:
    """Another expression in the place of the one at the place's span."""
    tree = tree_at(program, place)
    node = None if tree is None else _at(tree, place)
    new = None if tree is None else parsed(tree, code)
    if tree is None or node is None or new is None:
        return None
    draft = Draft(tree)
    draft.replace(node, _fitting(tree, node, new))
    return draft.edits()


def add_keyword(program: Program, place: Place, name: str, value: str) -> Edits | None:
    """`name=value` in the call at the place's span (`create_graph=True`)."""
    tree = tree_at(program, place)
    node = None if tree is None else _at(tree, place)
    if tree is None or not isinstance(node, cst.Call):
        return None
    draft = Draft(tree)
    draft.replace(node, with_keyword(node, name, expression(value)))
    return draft.edits()


def torch_instead_of_numpy(program: Program, place: Place) -> Edits | None:
    """`np.sqrt(x)` -> `torch.sqrt(x)`, keyword names included; None for what torch lacks."""
    tree = tree_at(program, place)
    node = None if tree is None else _at(tree, place)
    imports = imports_at(program, place)
    torch = imports.local("torch")
    if tree is None or torch is None or not isinstance(node, cst.Call):
        return None
    module, _, name = imports.full(dotted(node.func)).partition(".")
    if module not in ("numpy", "math") or (name not in _SAME and name not in _OTHER):
        return None
    draft = Draft(tree)
    draft.replace(node.func, expression(f"{torch}.{_OTHER.get(name, name)}"))
    for argument in node.args:
        new = _KEYWORDS.get(argument.keyword.value) if argument.keyword is not None else None
        if new is not None and argument.keyword is not None:
            draft.replace(argument.keyword, cst.Name(new))
    return draft.edits()


def tensors_instead_of_copy(program: Program, place: Place, *, many: bool) -> Edits | None:
    """`torch.tensor(x)` -> `x`; of several tensors -> `torch.stack(x)`.  A dtype is kept."""
    tree = tree_at(program, place)
    node = None if tree is None else _at(tree, place)
    torch = imports_at(program, place).local("torch")
    if tree is None or torch is None or not isinstance(node, cst.Call) or not node.args:
        return None
    value = node.args[0].value
    new = expression(f"{torch}.stack({{x}})", x=value) if many else value
    dtype = keyword(node, "dtype")
    if dtype is not None:
        new = expression("{x}.to({d})", x=_atom(new), d=dtype.value)
    draft = Draft(tree)
    draft.replace(node, _fitting(tree, node, new))
    return draft.edits()


def parsed(tree: Tree, code: str) -> cst.BaseExpression | None:
    try:
        return cst.parse_expression(code, tree.module.config_for_parsing)
    except cst.ParserSyntaxError:
        return None


def _at(tree: Tree, place: Place) -> cst.BaseExpression | None:
    """The expression at the span; of several that cover it the outermost."""
    if place.span is None:
        return None
    found = tree.expressions(place.span)
    found.sort(key=lambda n: sum(1 for _ in tree.ancestors(n)))
    return found[0] if found else None


def _fitting(tree: Tree, old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
    """The new expression with parentheses where the old one's surroundings need them."""
    parent = tree.parents.get(old)
    loose = (cst.Arg, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Return, cst.Expr, cst.Element)
    if old.lpar and not new.lpar and not _is_atom(new):
        return parenthesised(new)
    if isinstance(parent, (*loose, cst.DictElement, cst.Index)) or _is_atom(new):
        return new
    return parenthesised(new)


def _atom(node: cst.BaseExpression) -> cst.BaseExpression:
    return node if _is_atom(node) else parenthesised(node)


def _is_atom(node: cst.BaseExpression) -> bool:
    atoms = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.List, cst.ListComp, cst.Dict)
    return isinstance(node, atoms) or bool(node.lpar)


def numbers_only(code: str) -> bool:
    """Whether a list literal holds a number, which torch.stack does not take."""
    try:
        node = ast.parse(code, mode="eval").body
    except SyntaxError:
        return False
    elements = getattr(node, "elts", ())
    return any(isinstance(e, ast.Constant) for e in elements)
