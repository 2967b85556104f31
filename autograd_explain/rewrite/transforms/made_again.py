"""Optimizers made once more, on the parameters that a module has by then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from ...isolation.type_checks import is_a
from ...model import Edits, Place
from ...program import Program
from ..analysis.effects import base_path, reads_any
from ..engine.cst_tools import called_name, dotted, named_targets, single_targets
from ..engine.draft import Drafts
from ..engine.tree import Statement, Tree, statement_at

_At = tuple[Tree, cst.Assign]


def made_again(
    program: Program, place: Place, moved: bool = False, optimizer: Place | None = None
) -> Edits | None:
    """`net = adapt(net)` -> the same, then `opt = SGD(net.parameters())` once more, with the list
    that it is given and the scheduler that it is given to: they hold the tensors that there were
    when they were made.  `moved`: and not before, where nothing in between reads them.
    `optimizer` is where one is known to be made."""
    tree, own = statement_at(program, place)
    made = [] if own is None else holders(tree, own, optimizer)
    drafts = Drafts()
    drafts[tree].after(own, [s for _, s in made])
    for other, statement in made if own and moved and not _read_before(tree, own, made) else ():
        drafts[other].remove(statement)
    return drafts.edits()


def holders(tree: Tree, own: Statement, optimizer: Place | None = None) -> Sequence[_At]:
    """The statements above, at the same level of functions, that give an optimizer parameters of
    what `own` changes or replaces, those that list these, and those that get the optimizer: a
    scheduler's, and what its name stands for from there on."""
    names, optimizers = _changed(own), set[str]()
    lists: dict[str, _At] = {}
    made: dict[cst.Assign, _At] = {}

    def add(at: _At) -> None:
        for name, listed in lists.items():
            if listed[1] is not at[1] and listed[1] not in made and reads_any(at[1], {name}):
                add(listed)
        made[at[1]] = at

    for other, statement in _above(tree, own) if names else ():
        if not isinstance(statement, cst.Assign):
            continue
        holds = reads_any(statement, optimizers)
        given = holds or reads_any(statement, {*names, *lists})
        if given and _makes_optimizer(other, statement, optimizer):
            add((other, statement))
            optimizers |= named_targets(statement)
        elif holds and (
            named_targets(statement) & optimizers or "sched" in _callee(statement).lower()
        ):
            add((other, statement))
        elif reads_any(statement, {*names, *lists}):
            lists |= dict.fromkeys(named_targets(statement) - names, (other, statement))
    return list(made.values())


def _makes_optimizer(tree: Tree, statement: cst.Assign, optimizer: Place | None) -> bool:
    """Whether what a statement makes is an optimizer: by the class that it calls, or by what its
    name stands for now."""
    if tree.imports.full(_callee(statement)).startswith("torch.optim."):
        return True
    if optimizer is not None and tree.place(statement).line_id == optimizer.line_id:
        return True
    lives = isinstance(tree.scope_of(statement), cst.Module) and tree.source.cell is not None
    if not lives or not isinstance(statement.value, cst.Call):
        return False
    return any(_is_optimizer(tree.program.names.get(name)) for name in named_targets(statement))


def _is_optimizer(value: object) -> bool:
    from torch.optim import Optimizer

    return is_a(value, Optimizer)


def _read_before(tree: Tree, own: Statement, made: Sequence[_At]) -> bool:
    """Whether a statement up to `own` reads what was made, or calls what does; those that make it
    aside."""
    given = set[str]().union(*(named_targets(s) for _, s in made))
    makers = [statement for _, statement in made]
    for _, statement in _above(tree, own):
        if reads_any(statement, given) and statement not in makers:
            if not isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
                return True
            given.add(statement.name.value)
    return False


def _above(tree: Tree, own: Statement) -> Iterator[tuple[Tree, Statement]]:
    scope = tree.scope_of(own)
    for other in tree.namespace if scope is tree.module else ():
        if other.source.cell is not None and other.source.cell < (tree.source.cell or 0):
            yield from ((other, s) for s in other.statements if other.scope_of(s) is other.module)
    for statement in tree.statements:
        if tree.start(statement) < tree.start(own) and tree.scope_of(statement) is scope:
            yield tree, statement


def _changed(own: Statement) -> set[str]:
    """The objects that a statement replaces, or may: `net` of `net.head = …`, of `f(net[0])` and
    of `net.widen()`."""
    value = getattr(own, "value", None)
    nodes = single_targets(own)
    if isinstance(value, cst.Call) and isinstance(own, (cst.Assign, cst.Expr)):
        nodes += [arg.value for arg in value.args]
        nodes += [value.func] if isinstance(value.func, cst.Attribute) else []
    return {path for node in nodes if (path := _holder(node))}


def _holder(node: cst.BaseExpression) -> str:
    """`self.net` of `self.net[0].weight`, `net` of `net.head` and of `net`."""
    inner = node.value if isinstance(node, (cst.Attribute, cst.Subscript)) else node
    return base_path(inner) or ""


def _callee(statement: cst.Assign) -> str:
    value = statement.value
    return (dotted(value.func) or called_name(value)) if isinstance(value, cst.Call) else ""
