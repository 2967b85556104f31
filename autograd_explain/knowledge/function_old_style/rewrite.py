"""`MyFunction.apply(x)` with static methods; the present name of `saved_tensors`."""

import ast
from collections.abc import Iterator

import libcst as cst

from autograd_explain.program import Program, Source
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits, Fix, Propose, Site, by_table
from autograd_explain.rewrite.engine.cst_tools import head
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.transforms.uncut import Patch, apply_patches, lines_before

from .diagnose import Details


def _renamed(site: Site[Details]) -> Edits | None:
    tree, statement = site.tree, site.own
    draft = Draft(tree)
    for node in head(statement) if statement is not None else ():
        if isinstance(node, cst.Attribute) and node.attr.value == "saved_variables":
            draft.replace(node.attr, cst.Name("saved_tensors"))
    return draft.edits()


def _static(site: Site[Details]) -> Edits | None:
    """`Cube()(x)` -> `Cube.apply(x)`, where `Cube` is the user's and keeps nothing of its own."""
    call = site.call
    made = None if call is None else call.func
    if call is None or not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name):
        return None
    if made.args or made.keywords or call.keywords:
        return None
    methods = list(_methods(site.program, made.func.id))
    if {m.name for _, m in methods} != {"forward", "backward"}:
        return None
    applied = site.with_code(f"{made.func.id}.apply{{arguments}}")
    return apply_patches([*applied, *(p for source, m in methods for p in _decorated(source, m))])


def _methods(program: Program, name: str) -> Iterator[tuple[Source, ast.FunctionDef]]:
    """The methods of the class of this name as it was defined last."""
    for source, node in index_of(program).classes(name)[:1]:
        yield from ((source, n) for n in node.body if isinstance(n, ast.FunctionDef))


def _decorated(source: Source, method: ast.FunctionDef) -> Iterator[Patch]:
    if not method.decorator_list:
        yield lines_before(source, method, "@staticmethod")


propose: Propose[Details] = by_table(
    Fix("saved_tensors", _renamed, when=lambda d: d.saved),
    Fix("apply", _static, when=lambda d: d.called),
)
