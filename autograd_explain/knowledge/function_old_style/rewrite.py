"""`MyFunction.apply(x)` with static methods; the present name of `saved_tensors`."""

import ast
from functools import partial

import libcst as cst

from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.draft import Drafts
from autograd_explain.rewrite.engine.edits import merge
from autograd_explain.rewrite.transforms.grad_mode import decorated

from .diagnose import Details


def _renamed(site: Site[Details]) -> Edits | None:
    nodes = [n for n in ast.walk(site.statement or ast.Pass()) if isinstance(n, ast.Attribute)]
    old = (site.of(n).place for n in nodes if n.attr == "saved_variables")
    return site.at(*old).replaced("{owner}.saved_tensors")


def _static(site: Site[Details]) -> Edits | None:
    """`Cube()(x)` -> `Cube.apply(x)`, where `Cube` is the user's and keeps nothing of its own."""
    call = site.call
    made = None if call is None else call.func
    if call is None or not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name):
        return None
    if made.args or made.keywords or call.keywords:
        return None
    classes = index_of(site.program).classes(made.func.id)[:1]  # as it was defined last
    bodies = ((source, n) for source, node in classes for n in node.body)
    methods = [(source, n) for source, n in bodies if isinstance(n, ast.FunctionDef)]
    if {m.name for _, m in methods} != {"forward", "backward"}:
        return None
    edits, drafts = site.replaced(f"{made.func.id}.apply{{arguments}}"), Drafts()
    static = partial(decorated, cst.Decorator(cst.Name("staticmethod")))
    for source, method in methods:
        at = site.at(source.place(method.lineno, None, method))
        if not method.decorator_list and at.own is not None:
            drafts[at.tree].change(at.own, static)
    return merge(edits, drafts.edits()) if drafts else edits


propose: Propose[Details] = by_table(
    Fix("saved_tensors", _renamed, when=lambda d: d.saved),
    Fix("apply", _static, when=lambda d: d.called),
)
