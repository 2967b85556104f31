"""A backward that can be differentiated: without the decorator, of what has a graph.

`forward` runs without recording.  Of its arguments and results autograd knows the graph, of what it
computes in between it does not: that has to be computed again in `backward`.
"""

from __future__ import annotations

from collections import Counter
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
    single_targets,
    targets,
    unpacked,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.tree import (
    Statement,
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
    made, known = _made(forward), [*given, *_returned(forward)]
    attributes = {n: s for n, s in made.items() if n.startswith(f"{ctx}.")}
    apart = [n for n, s in attributes.items() if not _is_constant(s.value, known)]
    calls = (n for n in walk(forward) if isinstance(n, cst.Call))
    save = next((c for c in calls if dotted(c.func) == f"{ctx}.save_for_backward"), None)
    saved = [dotted(a.value) or "" for a in positional(save)] if save is not None else []
    lost = [name for name in saved if name not in known] + apart
    if not lost:
        return True
    unpacking = next((s for s in statements_in(backward.body) if _unpacks(s)), None)
    under_same_names = [dotted(t) for t in single_targets(unpacking)] == saved
    own = next(iter(positional_parameters(backward)), "")
    if not under_same_names or (apart and own != ctx) or not made.keys() >= {*lost}:
        return False  # under other names the statements would have to be written anew
    steps, needed = _slice(lost, made, known)
    found = {
        s.value.value: n.removeprefix(f"{ctx}.")
        for n, s in attributes.items()
        if isinstance(s.value, cst.Name)
    }
    leaves = [n for n in dict.fromkeys(known) if n in needed]
    plain = [n for n in _without_gradient(backward, given) if n in leaves and n not in found]
    kept = dict.fromkeys(n for n in (*saved, *leaves) if n in known and n not in (*found, *plain))
    save_kept = [make(f"{ctx}.save_for_backward({', '.join(kept)})")] if kept else []
    keep = [*save_kept, *(make(f"{ctx}.{n} = {n}") for n in plain)]
    unpack = make(f"{', '.join(kept)}{',' if len(kept) == 1 else ''} = {own}.saved_tensors")
    read = [make(f"{n} = {own}.{found.get(n, n)}") for n in leaves if n in (*found, *plain)]
    compute: list[Statement | BlockItem] = [unpack] if kept else []
    compute += [*read, *map(draft.piece, steps)]
    if save is None:
        draft.before(attributes[apart[0]], keep)
    else:
        draft.instead(draft.tree.statement_of(save), keep)
    if unpacking is None:
        draft.before(opening(backward.body), compute)
    else:
        draft.instead(unpacking, compute)
    return True


def _slice(
    lost: Sequence[str], made: Mapping[str, cst.Assign], known: Sequence[str]
) -> tuple[list[Statement], set[str]]:
    """The statements that compute the names, in order, and all the names that these need."""
    steps, needed = list[Statement](), {*lost}
    for name, statement in reversed([*made.items()]):
        if name in needed and name not in known:
            steps.insert(0, statement)
            needed |= {path.partition(".")[0] for path in effects(statement).reads}
    return steps, needed


def _without_gradient(backward: cst.FunctionDef, given: Sequence[str]) -> list[str]:
    """The arguments of `forward` for which `backward` returns None: mostly no tensors."""
    returned = [n.value for n in walk(backward.body) if isinstance(n, cst.Return)]
    parts = list(unpacked(returned[-1])) if returned and returned[-1] is not None else []
    return [name for name, part in zip(given, parts, strict=False) if dotted(part) == "None"]


def _made(forward: cst.FunctionDef) -> dict[str, cst.Assign]:
    """The plain assignments of `forward` by their name; a name that has several is left out."""
    statements = [n for n in walk(forward.body) if isinstance(n, (cst.Assign, cst.AugAssign))]
    found = [(dotted(t) or "", s) for s in statements for t in targets(s)]
    times = Counter(name for name, _ in found)
    return {n: s for n, s in found if times[n] == 1 and isinstance(s, cst.Assign)}


def _returned(forward: cst.FunctionDef) -> Iterator[str]:
    for node in walk(forward.body):
        if isinstance(node, cst.Return) and node.value is not None:
            yield from (dotted(leaf) or "" for leaf in unpacked(node.value))


def _is_constant(node: cst.BaseExpression, known: Sequence[str]) -> bool:
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
