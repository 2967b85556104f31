"""A forward hook that writes the output it was given -> one that returns a new output."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.program_index import index_of
from autograd_explain.rewrite.analysis.inplace_writes import is_given_anew
from autograd_explain.rewrite.engine.cst_tools import dotted, statement, targets, walk
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.imports import imports_at
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.engine.tree import Tree, statements_in, tree_at, tree_of
from autograd_explain.rewrite.transforms.all_writes import every_write


def returned_from_hook(program: Program, place: Place, name: str) -> Edits | None:
    """`out.clamp_(max=1)` in a forward hook -> `out = out.clamp(max=1)` and `return out`.

    What a forward hook returns takes the place of the module's output.  None where `name` is not
    the output of a function that the program registers as such a hook, or where it returns
    something already.
    """
    tree = tree_at(program, place)
    write = None if tree is None else tree.statement(place)
    hook = None if tree is None or write is None else tree.scope_of(write)
    if tree is None or not isinstance(hook, cst.FunctionDef) or _output(hook) != name:
        return None
    if is_given_anew(tree, imports_at(program, place), hook.body, name):
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
        draft.after(last, [statement(f"return {name}")])
    wanted = hook.name.value
    return every_write(program, draft.edits(), place, name, lambda t: _named(t, wanted), parts=True)


def _named(tree: Tree, name: str) -> Iterator[cst.CSTNode]:
    return (s for s in tree.statements if isinstance(s, cst.FunctionDef) and s.name.value == name)


def _output(hook: cst.FunctionDef) -> str | None:
    """A hook gets the module, its inputs (and their names), and last its output."""
    given = hook.params.params
    return given[-1].name.value if len(given) >= 3 and hook.params.star_kwarg is None else None


def _is_registered(program: Program, tree: Tree, hook: cst.FunctionDef) -> bool:
    """Whether the program registers the function itself, or what the function around it makes."""
    maker = next((a for a in tree.ancestors(hook) if isinstance(a, cst.FunctionDef)), None)
    names = {hook.name.value} | ({f"{maker.name.value}()"} if maker is not None else set())
    trees = (tree_of(source) for source in index_of(program).sources)
    return any(names & _registered(t) for t in (*trees, tree) if t is not None)


def _registered(tree: Tree) -> set[str]:
    """What is registered as a forward hook, `make_hook()` for what a call returned."""
    found: set[str] = set()
    for node in walk(tree.module):
        called = _called(node)
        if called.startswith("register_") and called.endswith("forward_hook"):
            assert isinstance(node, cst.Call)
            found |= {n for a in node.args[:1] for n in _functions(tree, a.value)}
    return found


def _functions(tree: Tree, node: cst.BaseExpression) -> Iterator[str]:
    if isinstance(node, cst.Call) and _called(node) == "partial" and node.args:
        yield from _functions(tree, node.args[0].value)
    elif isinstance(node, cst.Call):
        yield f"{_called(node)}()"
    elif isinstance(node, cst.Name):
        yield node.value
        yield from _assigned(tree, node.value)
    elif isinstance(node, cst.Attribute):
        yield node.attr.value


def _assigned(tree: Tree, name: str) -> Iterator[str]:
    """`make_hook()` where `name = make_hook(…)`."""
    for found in tree.statements:
        if isinstance(found, cst.Assign) and isinstance(found.value, cst.Call):
            if any(dotted(t) == name for t in targets(found)):
                yield from _functions(tree, found.value)


def _called(node: cst.CSTNode) -> str:
    """The last name of what a call calls; "" for anything else."""
    path = dotted(node.func) if isinstance(node, cst.Call) else None
    if path is None and isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return node.func.attr.value
    return (path or "").rpartition(".")[2]
