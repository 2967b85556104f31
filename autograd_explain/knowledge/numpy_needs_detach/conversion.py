"""A library's conversion to a tensor, on the way to a derivative, of what is a tensor already."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import libcst as cst

from autograd_explain.arguments import values_given
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.handed_to_library import entered
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place
from autograd_explain.program import Program, is_installed
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import effects
from autograd_explain.rewrite.engine.cst_tools import dotted, targets
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Statement, Tree, tree_at

from .numpy_call import NumpyCall


@dataclass(frozen=True)
class Conversion:
    """The call, and the tensor among its arguments."""

    call: Place
    given: Place


def conversion(scene: Scene, found: NumpyCall) -> Conversion | None:
    """The failing call, where it says that it makes tensors, a package other than NumPy runs it,
    and the only tensor with a graph that goes in is one of its arguments."""
    at = scene.surfaced
    if at is None or not isinstance(at.node, ast.Call) or len(found.reads) != 1:
        return None
    given = found.shown.node
    if not any(given is a for a in values_given(at.node)):
        return None
    if "tensor" not in _name(at).lower() or not _runs_package(scene):
        return None
    return Conversion(scene.slicer.place(at), scene.slicer.place(found.shown))


def _name(call: ExprAt) -> str:
    """`obs_to_tensor` of `policy.obs_to_tensor(x)`, `ToTensor` of `ToTensor()(x)`."""
    function = call.node.func if isinstance(call.node, ast.Call) else None
    inner = function.func if isinstance(function, ast.Call) else function
    return ast.unparse(inner).rpartition(".")[2] if inner is not None else ""


def _runs_package(scene: Scene) -> bool:
    """Whether the innermost of the user's frames called code of an installed package."""
    inside = entered(scene)
    if inside is None:
        return False
    package = str(inside.frame.f_globals.get("__name__", "")).partition(".")[0]
    return is_installed(inside.filename) and package not in ("torch", "numpy")


def tensor_itself(program: Program, found: Conversion | None) -> Edits | None:
    """`batch, _ = policy.obs_to_tensor(x)` -> `batch = x`: the one of several names that is read.
    None where more than one is."""
    tree = None if found is None else tree_at(program, found.call)
    if found is None or tree is None:
        return None
    call = next((n for n in tree.at(found.call) if isinstance(n, cst.Call)), None)
    given = next(iter(tree.at(found.given)), None)
    own = None if call is None else tree.statement_of(call)
    if call is None or given is None or own is None:
        return None
    around = tree.parents[call]
    if isinstance(around, cst.Subscript):  # the first of what it gives
        return Draft(tree).replace(around, given).edits()
    target = next(iter(targets(own)), None) if around is own else None
    if not isinstance(target, cst.Tuple):
        return Draft(tree).replace(call, given).edits()
    read = [e.value for e in target.elements if _is_read_behind(tree, own, e.value)]
    if len(read) != 1:
        return None
    return Draft(tree).replace(call, given).replace(target, read[0]).edits()


def _is_read_behind(tree: Tree, own: Statement, target: cst.BaseExpression) -> bool:
    name, behind = dotted(target), tree.statements[tree.statements.index(own) + 1 :]
    scope = tree.scope_of(own)
    read = {r for s in behind if tree.scope_of(s) is scope for r in effects(s).reads}
    return name is not None and any(r == name or r.startswith(f"{name}.") for r in read)
