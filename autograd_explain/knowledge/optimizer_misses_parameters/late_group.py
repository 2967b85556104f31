"""A group more for an optimizer that was made while parameters were frozen, or not there yet;
or all parameters from the start."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import effects
from autograd_explain.rewrite.engine.cst_tools import (
    called_on,
    dotted,
    make,
    positional,
    targets,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Scope, Statement, Tree, statement_at

_TWO = 2
_LISTS = ("parameters", "named_parameters", "modules", "named_modules", "children")


def group_added(
    program: Program, made: Place, unfrozen: tuple[Place, ...], names: tuple[str, ...] = ()
) -> Edits | None:
    """`net.layer4.requires_grad_(True)` -> the same, then `opt.add_param_group(…)` with what the
    optimizer made at `made` does not hold of `net.layer4`, where its name can be read.
    `unfrozen` are the lines that switched the flags on, or put the module in, outermost first;
    `names` are those of the parameters."""
    tree, making = statement_at(program, made)
    target = next(iter(targets(making)), None) if making is not None else None
    optimizer = "" if target is None else dotted(target)
    if making is None or target is None or not optimizer:
        return None
    for other, own in _readable(program, (tree, making), optimizer, unfrozen):
        own = _whole(other, own)
        module = _module(own, {part for name in names for part in name.split(".")})
        if module is not None:
            return Draft(other).after(own, _group(target, module)).edits()
    return None


def all_held(program: Program, made: Place) -> Edits | None:
    """`SGD([p for p in net.parameters() if p.requires_grad])`, or with `filter`, given all of them:
    a step skips what has no gradient."""
    tree, making = statement_at(program, made)
    if making is None:
        return None
    draft = Draft(tree)
    for node in walk(making):
        whole = _unfiltered(node)
        if whole is not None:
            draft.replace(node, whole)
    return draft.edits() if draft.changed else None


def _unfiltered(node: cst.CSTNode) -> cst.BaseExpression | None:
    """`net.parameters()` of what takes those alone that require grad."""
    if isinstance(node, cst.Call) and dotted(node.func) == "filter" and len(node.args) == _TWO:
        test, over = (a.value for a in node.args)
        return over if isinstance(test, cst.Lambda) and _is_flag(test.body) else None
    if not isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        return None
    only, same = node.for_in, dotted(node.elt) == dotted(node.for_in.target)
    alone = only.inner_for_in is None and len(only.ifs) == 1
    flagged = alone and same and _is_flag(only.ifs[0].test)
    return only.iter if flagged and called_on(only.iter, "parameters") is not None else None


def _is_flag(node: cst.BaseExpression) -> bool:
    """`p.requires_grad`"""
    return isinstance(node, cst.Attribute) and node.attr.value == "requires_grad"


def _readable(
    program: Program, made: tuple[Tree, Statement], optimizer: str, path: tuple[Place, ...]
) -> Iterator[tuple[Tree, Statement]]:
    """The statements of a path at which the optimizer's name can be read, the innermost first:
    those in the function that made it, then those in functions that read it or belong to the
    same class."""
    scope = made[0].scope_of(made[1])
    found = [(t, s) for p in reversed(path) for t, s in (statement_at(program, p),) if s]
    yield from ((t, s) for t, s in found if _is_same(t.scope_of(s), scope))
    yield from ((t, s) for t, s in found if _reads(t.scope_of(s), optimizer))
    if optimizer.startswith("self."):
        owner = made[0].outer(scope)
        yield from ((t, s) for t, s in found if owner and t.outer(t.scope_of(s)) is owner)


def _is_same(one: Scope, other: Scope) -> bool:
    """Every cell's top level is one scope."""
    return one is other or (isinstance(one, cst.Module) and isinstance(other, cst.Module))


def _reads(scope: Scope, name: str) -> bool:
    read = () if isinstance(scope, cst.Module) else effects(scope).reads
    return any(path == name or path.startswith(f"{name}.") for path in read)


def _whole(tree: Tree, own: Statement) -> Statement:
    """The loop over parameters around `p.requires_grad = True`, or over layers around that."""
    loops = [a for a in tree.loops(own) if isinstance(a, cst.For) and called_on(a.iter, *_LISTS)]
    return loops[-1] if loops else own


def _module(own: Statement, parts: set[str]) -> cst.BaseExpression | None:
    """`net.layer4` of `net.layer4.requires_grad_(True)`, of a loop over its parameters, of
    `unfreeze(net.layer4)`, of `net.layer4 = Block()` and of `loaded = load_into(net.layer4)`,
    where the parameters' names have it as a part."""
    call = own.iter if isinstance(own, cst.For) else getattr(own, "value", None)
    inner = call if isinstance(call, cst.Call) else None
    given = () if inner is None else (called_on(inner), *(a.value for a in positional(inner)))
    made = targets(own) if isinstance(own, cst.Assign) else ()
    found = [n for n in (*made, *given) if n is not None and _is_path(n)]
    named = (n for n in found if (dotted(n) or "").rpartition(".")[2] in parts)
    return next(named, next(iter(found), None))


def _is_path(node: cst.BaseExpression) -> bool:
    """`net.layer4`, `self.net.blocks[-1]`."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return isinstance(node, cst.Name)


def _group(optimizer: cst.BaseExpression, module: cst.BaseExpression) -> Iterator[Statement]:
    groups = 'held = {id(p) for group in {o}.param_groups for p in group["params"]}'
    yield make(groups, o=optimizer)
    late = "[p for p in {m}.parameters() if p.requires_grad and id(p) not in held]"
    yield make('{o}.add_param_group({"params": ' + late + "})", o=optimizer, m=module)
