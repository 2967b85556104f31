"""What takes back that something was frozen: the same statement with the other flag, or the
method that a library pairs with the one called."""

from __future__ import annotations

import ast

import libcst as cst

from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import class_attribute
from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.program_index import index_of
from autograd_explain.rewrite.engine.cst_tools import (
    called_name,
    called_on,
    dotted,
    positional,
    statement,
    walk,
)
from autograd_explain.rewrite.engine.tree import Statement, Tree

_LISTS = ("parameters", "named_parameters", "modules", "named_modules", "children")


def opposite(scene: Scene, place: Place) -> str:
    """`untoggle_optimizer` for a statement that calls `toggle_optimizer`, where the objects that
    have the one method have the other too; "" otherwise."""
    called = scene.program.statement_at(place)
    call = called.value if isinstance(called, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    if not isinstance(method, ast.Attribute):
        return ""
    other = f"un{method.attr}"
    kinds = {type(module) for _, module in scene.names.held_modules}
    owners = [k for k in kinds if class_attribute(k, method.attr) is not None]
    found = bool(owners) and all(class_attribute(k, other) is not None for k in owners)
    return other if found else ""


def whole(tree: Tree, own: Statement) -> Statement:
    """The loop over parameters around `p.requires_grad = False`, or over layers around that."""
    loops = [a for a in tree.loops(own) if isinstance(a, cst.For) and called_on(a.iter, *_LISTS)]
    return loops[-1] if loops else own


def undone(program: Program, tree: Tree, own: Statement, method: str) -> Statement | None:
    """`D.requires_grad_(True)` for `D.requires_grad_(False)` and for `freeze(D)`; the loop that
    sets the flags; the call of `method`, where one is paired with the one called."""
    flags = [n for n in walk(own) if isinstance(n, cst.Name) and n.value == "False"]
    if len(flags) == 1:
        new = own.deep_replace(flags[0], cst.Name("True"))
        return new if isinstance(new, (cst.BaseSmallStatement, cst.BaseCompoundStatement)) else None
    call = own.value if isinstance(own, cst.Expr) else None
    if not isinstance(call, cst.Call):
        return None
    if method and isinstance(call.func, cst.Attribute):
        return cst.Expr(call.with_deep_changes(call.func, attr=cst.Name(method)))
    name, given = called_name(call), positional(call)
    if any(index_of(program).defined(f"un{name}", tree.source)):
        return cst.Expr(call.with_changes(func=cst.Name(f"un{name}")))
    if len(given) != 1 or dotted(given[0].value) is None:
        return None
    return statement("{x}.requires_grad_(True)", x=given[0].value)
