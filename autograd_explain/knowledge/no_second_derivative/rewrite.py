"""A backward that can be differentiated: without the decorator, of what has a graph.

`forward` runs without recording.  Of its arguments and results autograd knows the graph, of what it
computes in between it does not: that has to be computed again in `backward`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits, Fix, Propose, Site, at_place, by_table
from autograd_explain.rewrite.analysis.effects import effects
from autograd_explain.rewrite.engine.blocks import BlockItem
from autograd_explain.rewrite.engine.cst_tools import (
    dotted,
    make,
    positional,
    positional_parameters,
    targets,
    unpacked,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import (
    Statement,
    Tree,
    functions_in,
    opening,
    statement_at,
    statements_in,
)
from autograd_explain.rewrite.transforms.grad_mode import with_plain_attention

from .kept import Kept
from .kernel import Kernel

_LEAVES_GRAPH = frozenset({"detach", "data", "item", "numpy", "tolist"})
_ABOUT_SHAPE = frozenset({"shape", "size", "numel", "dim", "ndim", "dtype", "device"})


def _differentiable(program: Program, place: Place) -> Edits | None:
    """Without the decorator, if there is one, of the backward at the place; what `forward` has kept
    of its own computation is computed again.  None where `backward` leaves torch, or that cannot
    be told."""
    tree, backward = statement_at(program, place)
    block = None if backward is None else tree.block_of(backward)
    if not isinstance(backward, cst.FunctionDef) or block is None:
        return None
    forward = functions_in(block).get("forward")
    words = {dotted(n) or "" for n in walk(backward.body)}
    if forward is None or any(w.split(".")[-1] in _LEAVES_GRAPH for w in words):
        return None
    draft = Draft(tree)
    for decorator in backward.decorators:
        if (dotted(decorator.decorator) or "").endswith("once_differentiable"):
            draft.drop(decorator)
    return draft.edits() if _computed_again(draft, forward, backward) else None


def _computed_again(draft: Draft, forward: cst.FunctionDef, backward: cst.FunctionDef) -> bool:
    """Whether all that `backward` reads has a graph, by what the draft changes."""
    ctx, *given = positional_parameters(forward) or [""]
    made = _made(forward)
    known = {*given, *_returned(forward)} - {""}
    attributes = dict(_attributes(forward, ctx))
    apart = [n for n, s in attributes.items() if not _is_constant(s.value, known)]
    calls = (n for n in walk(forward) if isinstance(n, cst.Call))
    save = next((c for c in calls if dotted(c.func) == f"{ctx}.save_for_backward"), None)
    unpacking = next((s for s in statements_in(backward.body) if _unpacks(s)), None)
    names = [dotted(n) or "" for t in targets(unpacking) for n in unpacked(t)] if unpacking else []
    values = [a.value for a in positional(save)] if save is not None else []
    read_as = names if len(names) == len(values) else [""] * len(values)
    saved = [dotted(value) or name for value, name in zip(values, read_as, strict=True)]
    unnamed = _unnamed(draft.tree, values, read_as)
    made |= unnamed
    lost = [name for name in saved if name not in known] + apart
    if not lost:
        return True
    needed = _closure(lost, made | {n: attributes[n] for n in apart}, known)
    own = positional_parameters(backward)[:1]
    if needed is None or names != saved or (apart and own != [ctx]):
        return False  # under other names the statements would have to be written anew
    steps, leaves = needed
    found = {s.value.value: n for n, s in attributes.items() if isinstance(s.value, cst.Name)}
    plain = [n for n in _without_gradient(backward, given) if n in leaves and n not in found]
    kept = [n for n in saved if n in known]
    kept += [n for n in leaves if n not in kept and n not in found and n not in plain]
    keeping = [make(f"{ctx}.{n} = {n}") for n in plain]
    saving = f"{ctx}.save_for_backward({', '.join(kept)})"
    if save is not None:
        around = next(s for s in statements_in(forward.body) if any(n is save for n in walk(s)))
        draft.instead(around, [make(saving), *keeping])
    else:
        draft.before(attributes[apart[0]], [*([make(saving)] if kept else []), *keeping])
    lines = [make(f"{n} = {own[0]}.{found.get(n, n)}") for n in leaves if n in (*found, *plain)]
    unpack = make(f"{', '.join(kept)}{',' if len(kept) == 1 else ''} = {own[0]}.saved_tensors")
    new: list[Statement | BlockItem] = [*([unpack] if kept else []), *lines]
    new += [s if s in unnamed.values() else draft.piece(s) for s in steps]
    if unpacking is not None:
        draft.instead(unpacking, new)
    else:
        draft.before(opening(backward.body), new)
    return True


def _unnamed(
    tree: Tree, values: Sequence[cst.BaseExpression], names: Sequence[str]
) -> dict[str, cst.Assign]:
    """What is saved without a name (`ctx.save_for_backward(x.cos())`), assigned to the name that
    `backward` gives it."""
    made = {
        name: make(f"{name} = {tree.code(value)}")
        for value, name in zip(values, names, strict=True)
        if name and dotted(value) is None
    }
    return {name: s for name, s in made.items() if isinstance(s, cst.Assign)}


def _without_gradient(backward: cst.FunctionDef, given: Sequence[str]) -> list[str]:
    """The arguments of `forward` for which `backward` returns None: mostly no tensors."""
    returned = [n.value for n in walk(backward.body) if isinstance(n, cst.Return)]
    parts = list(unpacked(returned[-1])) if returned and returned[-1] is not None else []
    return [name for name, part in zip(given, parts, strict=False) if dotted(part) == "None"]


def _made(forward: cst.FunctionDef) -> dict[str, cst.Assign]:
    """The plain assignments of `forward` by their name; a name that has several is left out."""
    found: dict[str, list[Statement]] = {}
    for statement in (n for n in walk(forward.body) if isinstance(n, (cst.Assign, cst.AugAssign))):
        for target in targets(statement):
            found.setdefault(dotted(target) or "", []).append(statement)
    return {n: s[0] for n, s in found.items() if len(s) == 1 and isinstance(s[0], cst.Assign)}


def _closure(
    lost: list[str], made: Mapping[str, cst.Assign], known: set[str]
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
        read = {path.partition(".")[0] for path in effects(inner).reads}
        for word in (n.value for n in walk(inner.value) if isinstance(n, cst.Name)):
            if word not in read:
                continue  # `cos` of `torch.cos(x)`
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


def _attributes(forward: cst.FunctionDef, ctx: str) -> Iterator[tuple[str, cst.Assign]]:
    """`s` of `ctx.s = scale`, and the statement."""
    for node in walk(forward.body):
        paths = [dotted(t) or "" for t in targets(node)] if isinstance(node, cst.Assign) else []
        for path in paths:
            if path.startswith(f"{ctx}.") and isinstance(node, cst.Assign):
                yield path.removeprefix(f"{ctx}."), node


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


def _plain_attention(site: Site[Kept | Kernel | None]) -> Edits | None:
    """Each statement that runs attention, under the kernel that is made of ordinary operations."""
    places = site.details.attention if isinstance(site.details, Kernel) else ()
    return site.at(*places).each(with_plain_attention)


propose: Propose[Kept | Kernel | None] = by_table(
    Fix("plain_attention", _plain_attention, when=lambda d: isinstance(d, Kernel)),
    Fix("differentiable", at_place(_differentiable), when=lambda d: d is None),
    Fix(
        "computed_again",
        lambda s: (
            _differentiable(s.program, s.details.backward) if isinstance(s.details, Kept) else None
        ),
        changes=True,
    ),
)
