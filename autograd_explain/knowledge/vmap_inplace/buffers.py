"""What a transformed function writes to: batched as the values are, or its own."""

from collections.abc import Iterator

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import fresh, used_names
from autograd_explain.rewrite.analysis.inplace_writes import inplace_calls
from autograd_explain.rewrite.engine.cst_tools import (
    dotted,
    expression,
    find,
    make,
    positional_parameters,
    targets,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.imports import imports_at
from autograd_explain.rewrite.engine.tree import Statement, Tree, statement_at


def batched(program: Program, place: Place, number: int) -> Edits | None:
    """`out = torch.zeros(4)`, `out[i] = x.sum()` -> `out = x.new_zeros(4)`: a buffer that is
    batched where the tensor is that the values are computed from."""
    tree, own = statement_at(program, place)
    written = next((t for t in targets(own) if isinstance(t, cst.Subscript)), None) if own else None
    if own is None or written is None:
        return None
    made = _made(tree, own, dotted(written.value) or "")
    imports = imports_at(program, place)
    name = imports.full(dotted(made.func)).removeprefix("torch.") if made is not None else ""
    read = list(_read(tree, own))[number : number + 1]
    if made is None or name not in _BUFFERS or not read:
        return None
    function = expression(f"{read[0]}.new_{name}")
    return Draft(tree).replace(made.func, function).edits()


_BUFFERS = frozenset("zeros ones empty full".split())


def _made(tree: Tree, own: Statement, name: str) -> cst.Call | None:
    """The call that made what a name stands for, in the scope of a statement."""
    found = None
    for other in tree.statements:
        if tree.start(other) < tree.start(own) and tree.scope_of(other) is tree.scope_of(own):
            if isinstance(other, cst.Assign) and name in map(dotted, targets(other)):
                found = other.value
    return found if isinstance(found, cst.Call) else None


def _read(tree: Tree, own: Statement) -> Iterator[str]:
    """The parameters of the function around, those first that the written value names."""
    scope = tree.scope_of(own)
    given = positional_parameters(scope) if isinstance(scope, cst.FunctionDef) else []
    named = used_names(own)
    yield from sorted((n for n in given if n != "self"), key=lambda name: name not in named)


def as_local(program: Program, place: Place) -> Edits | None:
    """`cache.add_(x)` -> `new_cache = cache.add(x)`, which the function reads from there on."""
    tree, own = statement_at(program, place)
    calls = inplace_calls(tree, own) if own else []
    if own is None or not isinstance(own, cst.Expr) or len(calls) != 1:
        return None
    written = tree.code(calls[0].target)
    name = fresh(tree, own, f"new_{written.rpartition('.')[2]}")
    draft = Draft(tree).instead(own, [make(f"{name} = {{v}}", v=calls[0].value)])
    for other in tree.statements:
        if tree.start(other) > tree.start(own) and tree.scope_of(other) is tree.scope_of(own):
            for node in find(tree, other, written):
                draft.replace(node, cst.Name(name))
    return draft.edits()
