"""A backward that can be differentiated: without the decorator, of what has a graph.

`forward` runs without recording.  Of its arguments and results autograd knows the graph, of what it
computes in between it does not: that has to be computed again in `backward`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Fix, Propose, at_place, by_table
from autograd_explain.rewrite.engine.cst_tools import (
    dotted,
    positional,
    positional_parameters,
    targets,
    unpacked,
    walk,
)
from autograd_explain.rewrite.engine.cst_tools import statement as make
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import Statement, Tree, statement_at, statements_in

_LEAVES_GRAPH = frozenset({"detach", "data", "item", "numpy", "tolist"})
_ABOUT_SHAPE = frozenset({"shape", "size", "numel", "dim", "ndim", "dtype", "device"})


def _differentiable(program: Program, place: Place) -> Edits | None:
    """Without the decorator at the place; what `forward` has saved of its own computation is
    computed again.  None where `backward` leaves torch, or that cannot be told."""
    tree, backward = statement_at(program, place)
    if not isinstance(backward, cst.FunctionDef):
        return None
    forward = _sibling(tree, backward, "forward")
    names = [(d, dotted(d.decorator) or "") for d in backward.decorators]
    marked = [d for d, name in names if name.endswith("once_differentiable")]
    words = {dotted(n) or "" for n in walk(backward.body)}
    if forward is None or not marked or any(w.split(".")[-1] in _LEAVES_GRAPH for w in words):
        return None
    draft = Draft(tree)
    for decorator in marked:
        draft.replace(decorator, cst.RemoveFromParent())  # type: ignore[arg-type]
    return draft.edits() if _computed_again(draft, forward, backward) else None


def _sibling(tree: Tree, method: cst.FunctionDef, name: str) -> cst.FunctionDef | None:
    inside = tree.siblings(method)[0]
    found = [s for s in inside if isinstance(s, cst.FunctionDef) and s.name.value == name]
    return found[0] if len(found) == 1 else None


def _computed_again(draft: Draft, forward: cst.FunctionDef, backward: cst.FunctionDef) -> bool:
    """Whether all that `backward` reads has a graph, by what the draft changes."""
    ctx, *given = positional_parameters(forward) or [""]
    made = _made(forward)
    known = {*given, *_returned(forward)} - {""}
    attributes = list(_attributes(forward, ctx))
    if not all(_is_constant(value, known) for _, value in attributes):
        return False
    calls = (n for n in walk(forward) if isinstance(n, cst.Call))
    save = next((c for c in calls if dotted(c.func) == f"{ctx}.save_for_backward"), None)
    saved = [dotted(a.value) or "" for a in positional(save)] if save is not None else []
    lost = [name for name in saved if name not in known]
    if not lost:
        return True
    needed = _closure(lost, made, known)
    unpacking = next((s for s in statements_in(backward.body) if _unpacks(s)), None)
    names = [dotted(n) or "" for t in targets(unpacking) for n in unpacked(t)] if unpacking else []
    if needed is None or len(names) != len(saved) or unpacking is None:
        return False
    if any(inner != outer for inner, outer in zip(names, saved, strict=True)):
        return False  # under other names the statements would have to be written anew
    steps, leaves = needed
    found = {value.value: name for name, value in attributes if isinstance(value, cst.Name)}
    kept = [n for n in saved if n in known]
    kept += [n for n in leaves if n not in kept and n not in found]
    assert save is not None
    draft.replace(save, save.with_changes(args=[cst.Arg(cst.Name(n)) for n in kept]))
    own = positional_parameters(backward)[:1]
    lines = [make(f"{n} = {own[0]}.{found[n]}") for n in leaves if n in found]
    unpack = make(f"{', '.join(kept)}{',' if len(kept) == 1 else ''} = {own[0]}.saved_tensors")
    draft.instead(unpacking, [unpack, *lines, *(draft.piece(s) for s in steps)])
    return True


def _made(forward: cst.FunctionDef) -> dict[str, Statement]:
    """The plain assignments of `forward` by their name; a name that has several is left out."""
    found: dict[str, list[Statement]] = {}
    for statement in (n for n in walk(forward.body) if isinstance(n, (cst.Assign, cst.AugAssign))):
        for target in targets(statement):
            found.setdefault(dotted(target) or "", []).append(statement)
    return {n: s[0] for n, s in found.items() if len(s) == 1 and isinstance(s[0], cst.Assign)}


def _closure(
    lost: list[str], made: dict[str, Statement], known: set[str]
) -> tuple[list[Statement], list[str]] | None:
    """The statements that compute the names, in order, and the arguments and results that these
    read; None where one of them is computed otherwise."""
    steps: dict[str, Statement] = {}
    leaves: list[str] = []

    def add(name: str) -> bool:
        if name in steps:
            return True
        if name not in made:
            return False
        inner = made[name]
        assert isinstance(inner, cst.Assign)
        for node in walk(inner.value):
            word = node.value if isinstance(node, cst.Name) else ""
            if word in known and word not in leaves:
                leaves.append(word)
            elif word in made and word not in known and not add(word):
                return False
        steps[name] = inner
        return True

    return (list(steps.values()), leaves) if all(map(add, lost)) else None


def _returned(forward: cst.FunctionDef) -> Iterator[str]:
    for node in walk(forward.body):
        if isinstance(node, cst.Return) and node.value is not None:
            yield from (dotted(leaf) or "" for leaf in unpacked(node.value))


def _attributes(forward: cst.FunctionDef, ctx: str) -> Iterator[tuple[str, cst.BaseExpression]]:
    """`s` and `scale` of `ctx.s = scale`."""
    for node in walk(forward.body):
        paths = [dotted(t) or "" for t in targets(node)] if isinstance(node, cst.Assign) else []
        for path in paths:
            if path.startswith(f"{ctx}.") and isinstance(node, cst.Assign):
                yield path.removeprefix(f"{ctx}."), node.value


def _is_constant(node: cst.BaseExpression, known: set[str]) -> bool:
    """Whether nothing is lost where an attribute keeps it: an argument, a mask, a number."""
    if isinstance(node, (cst.Comparison, cst.BaseNumber, cst.SimpleString)):
        return True
    if isinstance(node, cst.Name):
        return node.value in known or node.value in ("True", "False", "None")
    words = {n.attr.value for n in walk(node) if isinstance(n, cst.Attribute)}
    return not words.isdisjoint(_ABOUT_SHAPE)


def _unpacks(statement: Statement) -> bool:
    value = statement.value if isinstance(statement, cst.Assign) else None
    return (dotted(value) or "").endswith(".saved_tensors") if value is not None else False


propose: Propose[object] = by_table(Fix("differentiable", at_place(_differentiable)))
