"""`raw = h.data; raw.mul_(2)` -> `h.data.mul_(2)`: the write as the tensor itself would make it.

Other transformers know writes through `.data` and `.detach()`; they can then go on from here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.program_index import index_of
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.inplace_writes import without_data
from autograd_explain.rewrite.engine.cst_tools import (
    repeatable,
    single_targets,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.edits import apply, merge
from autograd_explain.rewrite.engine.tree import Statement, Tree, tree_at


def through_tensor(
    program: Program,
    alias: Place,
    write: Place,
    step: Callable[[Program, Place], Edits | None],
) -> Edits | None:
    """`step` on the program in which the write at `write` does not go through the name bound at
    `alias`, both as one rewrite.

    None where the name is used for anything else, and for code in files.
    """
    tree, source = tree_at(program, write), program.source_at(write)
    if source is None or (alias.cell, alias.file) != (write.cell, None):
        return None
    writing = tree.statement(write)
    if writing is None or source.text.strip() != source.python.strip():
        return None
    bound = [s for s in tree.candidates(alias) if _is_alias(s)]
    if len(bound) != 1 or not isinstance(bound[0], cst.Assign):
        return None
    used = _only_use(tree, bound[0], writing)
    if used is None or _bound_between(tree, bound[0], writing):
        return None
    named = index_of(program).nodes(ast.Name, naming=(used.value,))
    if any(node.id == used.value for where, node in named if where is not source):
        return None
    draft = Draft(tree)
    # Not `.detach()`: nothing can be assigned to a call.
    draft.replace(used, cst.Attribute(without_data(bound[0].value), cst.Name("data")))
    draft.remove(bound[0])
    edits = draft.edits()
    edited = apply(program, edits)
    new = None if edited is None else edited.program.cell(write.cell)
    if edited is None or new is None:
        return None
    gone = len(source.lines) - len(new.lines)
    return merge(edits, step(edited.program, new.place(write.line - gone, write.function)))


def _is_alias(statement: Statement) -> bool:
    """`name = tensor.data` or `name = tensor.detach()`."""
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return False
    tensor = without_data(statement.value)
    named = isinstance(statement.targets[0].target, cst.Name)
    return named and tensor is not statement.value and repeatable(tensor)


def _only_use(tree: Tree, alias: cst.Assign, writing: Statement) -> cst.Name | None:
    """The name in the writing statement, where it stands nowhere else."""
    name = cst.ensure_type(alias.targets[0].target, cst.Name)
    scope = tree.scope_of(alias)
    if scope is not tree.scope_of(writing):
        return None
    uses = [n for n in walk(scope) if isinstance(n, cst.Name) and n.value == name.value]
    others = [n for n in uses if n is not name]
    return others[0] if len(others) == 1 and tree.inside(others[0], writing) else None


def _bound_between(tree: Tree, alias: cst.Assign, writing: Statement) -> bool:
    """Whether the tensor's name stands for another tensor by the time of the write."""
    tensor = tree.code(without_data(alias.value))
    first, last = tree.start(alias), tree.start(writing)
    # A loop that the alias is made before comes back to the write.
    loops = [a for a in tree.ancestors(writing) if isinstance(a, (cst.For, cst.While))]
    loops = [loop for loop in loops if not tree.inside(alias, loop)]
    return last < first or any(
        tree.code(leaf) in (tensor, tensor.partition(".")[0])
        for statement in tree.statements
        if first < tree.start(statement) < last or any(tree.inside(statement, a) for a in loops)
        for leaf in single_targets(statement)
    )
