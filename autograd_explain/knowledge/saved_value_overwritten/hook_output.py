"""A forward hook that writes the output it was given -> one that returns a new output."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program, called_name
from autograd_explain.program_index import ProgramIndex, index_of
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.inplace_writes import is_given_anew
from autograd_explain.rewrite.engine.cst_tools import make, walk
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Tree, statement_at, statements_in
from autograd_explain.rewrite.transforms.out_of_place import every_write


def returned_from_hook(program: Program, place: Place, name: str) -> Edits | None:
    """`out.clamp_(max=1)` in a forward hook -> `out = out.clamp(max=1)` and `return out`.

    What a forward hook returns takes the place of the module's output.  None where `name` is not
    the output of a function that the program registers as such a hook, or where it returns
    something already.
    """
    tree, write = statement_at(program, place)
    hook = None if write is None else tree.scope_of(write)
    if not isinstance(hook, cst.FunctionDef) or _output(hook) != name:
        return None
    if is_given_anew(tree, hook.body, name):
        return None
    returns = [n for n in walk(hook.body) if isinstance(n, cst.Return)]
    returns = [r for r in returns if tree.scope_of(r) is hook]
    if any(r.value is not None for r in returns) or not _is_registered(program, tree, hook):
        return None
    draft = Draft(tree)
    for bare in returns:
        space = cst.SimpleWhitespace(" ")
        new = bare.with_changes(value=cst.Name(name), whitespace_after_return=space)
        draft.replace(bare, new)
    last = statements_in(hook.body)[-1]
    if not isinstance(last, cst.Return):
        draft.after(last, [make(f"return {name}")])
    wanted = hook.name.value
    return every_write(program, draft.edits(), place, name, lambda t: _named(t, wanted), parts=True)


def _named(tree: Tree, name: str) -> Iterator[cst.CSTNode]:
    return (s for s in tree.statements if isinstance(s, cst.FunctionDef) and s.name.value == name)


def _output(hook: cst.FunctionDef) -> str | None:
    """A hook gets the module, its inputs (and their names), and last its output."""
    given = hook.params.params
    return given[-1].name.value if len(given) >= 3 and hook.params.star_kwarg is None else None


def _is_registered(program: Program, tree: Tree, hook: cst.FunctionDef) -> bool:
    """Whether the program registers the function itself, what the function around it makes, or an
    object whose call it is."""
    makers = (cst.ClassDef,) if hook.name.value == "__call__" else (cst.FunctionDef,)
    maker = next((a for a in tree.ancestors(hook) if isinstance(a, makers)), None)
    names = {hook.name.value} | ({f"{maker.name.value}()"} if maker is not None else set())
    return not names.isdisjoint(_registered(index_of(program)))


def _registered(index: ProgramIndex) -> Iterator[str]:
    """What is registered as a forward hook, `make_hook()` for what a call returned, `Watch()` for
    an object."""
    for source, call in index.nodes(ast.Call):
        name = called_name(call)
        if name.startswith("register_") and name.endswith("forward_hook") and call.args:
            yield from _functions(index, call.args[0])
            if isinstance(call.args[0], ast.Name) and call.args[0].id == "self":
                around = (n for n in source.around(call) if isinstance(n, ast.ClassDef))
                yield from (f"{cls.name}()" for cls in around)


def _functions(
    index: ProgramIndex, node: ast.expr, passed: frozenset[str] = frozenset()
) -> Iterator[str]:
    """What a function is called; `passed` are the names that led to it."""
    if isinstance(node, ast.Call) and called_name(node) == "partial" and node.args:
        yield from _functions(index, node.args[0], passed)
    elif isinstance(node, ast.Call):
        yield f"{called_name(node)}()"
    elif isinstance(node, ast.Name) and node.id not in passed:
        yield node.id
        for _, made in index.assignments(node.id):  # `node = make_hook(…)`
            if isinstance(made.value, ast.Call):
                yield from _functions(index, made.value, passed | {node.id})
    elif isinstance(node, ast.Attribute):
        yield node.attr
