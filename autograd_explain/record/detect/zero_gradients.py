"""Leaves whose every way to the loss leads through an operation whose derivative is 0, or a sum in
which they cancel (`z + (q - z)`, `(z + q) - z`), and random draws in a loss that other terms lead
past."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from ...model import ZeroBy
from ...nodes import GraphTraversal
from ..observe.event_log import EventLog
from ..observe.tensor_facts import is_plain
from .finding import CandidateFault, Mark, Marks, Weak, weak

#: Nodes that hand back zeros (`zeros_like(grad)` in torch's derivatives.yaml, tried on torch 2.13).
_STEPS = frozenset(
    "RoundBackward0 RoundBackward1 FloorBackward0 CeilBackward0 TruncBackward0 "
    "SignBackward0 SgnBackward0".split()
)
#: torch.normal, torch.bernoulli and torch.poisson of what has a graph.
_DRAWS = ("NormalBackward", "BernoulliBackward", "PoissonBackward")
#: grid_sample: of the image and the grid; 1 is the mode "nearest" (`GridSamplerInterpolation`).
_SAMPLER, _MODE, _GRID = "GridSampler", "_saved_interpolation_mode", 1
_DIVISION = "DivBackward"
_ADDITION, _DIFFERENCE, _ALPHA, _TWO = "AddBackward", "SubBackward", "_saved_alpha", 2
_ROUNDING = "_saved_rounding_mode"  #: torch.div(x, y, rounding_mode="floor")
_SUMS = ("AddBackward", "SubBackward", "RsubBackward")
_MAX_NODES = 5_000


class _Behind(NamedTuple):
    """A leaf that only gets zeros: the call that made the last such operation on its way to the
    loss, the backward, and whether the whole loss is computed of what such operations give."""

    leaf: Weak
    shape: str
    operation: Mark
    backward: Mark
    whole: bool
    by: ZeroBy


def has_zero_derivative(node: Any) -> bool:
    """Whether a node's derivative is 0 wherever there is one, for one of its inputs at least."""
    name = type(node).__name__
    if name in _STEPS or name.startswith(_DRAWS):
        return True
    if name.startswith(_DIVISION):
        return getattr(node, _ROUNDING, None) is not None
    return name.startswith(_SAMPLER) and getattr(node, _MODE, 0) == 1


def _hands_zeros(node: Any, number: int) -> bool:
    """Whether it hands zeros to the input of this number."""
    if not has_zero_derivative(node):
        return False
    return number == _GRID or not type(node).__name__.startswith(_SAMPLER)


def cancelling(node: Any) -> tuple[tuple[Any, int], ...]:
    """The two edges of `z + (q - z)`, or of `(z + q) - z`, that lead to z: what comes by one takes
    away what comes by the other."""
    edges = node.next_functions if type(node).__name__.startswith(_SUMS[:2]) else ()
    if len(edges) != _TWO or getattr(node, _ALPHA, 1) != 1:
        return ()
    inner, taken = (_ADDITION, (0, 1)) if _takes_away(node) else (_DIFFERENCE, (1,))
    for number, (other, _) in enumerate(edges[:1] if _takes_away(node) else edges):
        z = edges[1 - number]
        if z[0] and type(other).__name__.startswith(inner) and getattr(other, _ALPHA, 1) == 1:
            for place in taken:
                if other.next_functions[place : place + 1] == (z,):
                    return (node, 1 - number), (other, place)
    return ()


def _zero_by(node: Any) -> ZeroBy:
    if _takes_away(node):
        return ZeroBy.DIFFERENCE
    is_sum = type(node).__name__.startswith(_ADDITION)
    return ZeroBy.SUM if is_sum else ZeroBy.OPERATION


def _takes_away(node: Any) -> bool:
    return type(node).__name__.startswith(_DIFFERENCE)


@dataclass
class ZeroGradients:
    """Suspects by the graph, confirmed by the gradient that a step finds or the cell leaves."""

    log: EventLog
    _behind: dict[int, _Behind] = field(default_factory=dict)
    _confirmed: set[int] = field(default_factory=set)
    _partly: dict[int, _Behind] = field(default_factory=dict)

    def begin(self) -> None:
        """A cell begins."""
        self._behind.clear()
        self._confirmed.clear()
        self._partly.clear()

    def look(self, roots: Iterable[Tensor], backward: Mark) -> None:
        """A backward begins on a graph that has such operations."""
        walk = GraphTraversal((r.grad_fn for r in roots), limit=_MAX_NODES)
        entry, leaves = _entries(walk, roots)
        if not walk.complete:
            return
        whole = all(entry[node] is not None for node in leaves)
        for node, leaf in reversed(leaves.items()):  # as the loss was computed
            step = entry[node]
            made = None if step is None else self.log.maker_of(step._sequence_nr())
            if made is not None and id(leaf) not in self._behind:
                mark = Mark(made.site, made.clock)
                shape, by = str(list(leaf.shape)), _zero_by(step)
                self._behind[id(leaf)] = _Behind(weak(leaf), shape, mark, backward, whole, by)
        for draw in _draws(entry):
            self._drawn(draw, leaves, entry, backward)

    def _drawn(
        self, draw: Any, leaves: dict[Any, Tensor], entry: dict[Any, Any], backward: Mark
    ) -> None:
        """The leaves behind a draw that get the gradient of other terms."""
        made = self.log.maker_of(draw._sequence_nr())
        inside = {r.node for r in GraphTraversal((draw,), limit=_MAX_NODES)}
        for node, leaf in leaves.items() if made is not None else ():
            if node in inside and entry[node] is None and made is not None:
                mark, shape = Mark(made.site, made.clock), str(list(leaf.shape))
                behind = _Behind(weak(leaf), shape, mark, backward, False, ZeroBy.DRAW)
                self._partly.setdefault(id(leaf), behind)

    def before_step(self, parameters: Iterable[Tensor]) -> None:
        if self._behind:
            for parameter in parameters:
                self._compare(parameter)

    def _compare(self, leaf: Tensor) -> None:
        """What the graph says is held against the gradient that came."""
        known = self._behind.get(id(leaf))
        gradient = leaf.grad
        if known is None or known.leaf() is not leaf or gradient is None:
            return
        if not is_plain(gradient) or bool(gradient.any()):
            del self._behind[id(leaf)]
            self._confirmed.discard(id(leaf))
        else:
            self._confirmed.add(id(leaf))

    def left_behind(self) -> Iterator[CandidateFault]:
        """A finding for each such operation, where the cell has ended."""
        for behind in [*self._behind.values()]:
            if (leaf := behind.leaf()) is not None:
                self._compare(leaf)
        by_site: dict[int, list[_Behind]] = {}
        for key, behind in self._behind.items():
            if key in self._confirmed:
                by_site.setdefault(behind.operation.site, []).append(behind)
        for behind in self._partly.values():
            if behind.leaf() is not None:
                by_site.setdefault(behind.operation.site, []).append(behind)
        for found in by_site.values():
            marks: Marks = {"operation": (found[0].operation,), "backward": (found[0].backward,)}
            evidence = {
                "parameters": tuple(b.leaf for b in found),
                "shapes": tuple(b.shape for b in found),
                "count": len(found),
                "whole": all(b.whole for b in found),
                "by": found[0].by if len({b.by for b in found}) == 1 else ZeroBy.OPERATION,
            }
            yield CandidateFault("zero-gradient", marks, evidence)


def _entries(
    walk: GraphTraversal, roots: Iterable[Tensor]
) -> tuple[dict[Any, Any], dict[Any, Tensor]]:
    """For each node, None where a gradient can reach it, else the operation that gives zeros; and
    the leaves by their nodes.  A node comes after all that hand it a gradient, but for leaves'."""
    entry: dict[Any, Any] = {r.grad_fn: None for r in roots if r.grad_fn is not None}
    leaves: dict[Any, Tensor] = {}
    undone: dict[tuple[Any, int], Any] = {}
    for reached in walk:
        node = reached.node
        undone |= dict.fromkeys(cancelling(node), node)
        if isinstance(leaf := getattr(node, "variable", None), Tensor):
            leaves[node] = leaf
        for number, (child, _) in enumerate(node.next_functions):
            zeros = node if _hands_zeros(node, number) else undone.get((node, number))
            given = zeros if entry[node] is None else entry[node]
            if child is not None and (child not in entry or entry[child] is not None):
                entry[child] = given
    return entry, leaves


def _draws(entry: dict[Any, Any]) -> Iterator[Any]:
    """The draws that a gradient reaches and that no density weighs: the score function takes the
    draw and what it was drawn with apart (`x - mean`) and needs no gradient of it."""
    found = [n for n, given in entry.items() if given is None and _is_draw(n)]
    sums = [n for n in entry if type(n).__name__.startswith(_SUMS)] if found else []
    for draw in found:
        own = {child for child, _ in draw.next_functions if child is not None}
        if not any(_weighs(node, draw, own) for node in sums):
            yield draw


def _is_draw(node: Any) -> bool:
    return type(node).__name__.startswith(_DRAWS)


def _weighs(node: Any, draw: Any, own: set[Any]) -> bool:
    """Whether a sum takes the draw, or a view or multiple of it, and what it was drawn with."""
    children = [child for child, _ in node.next_functions if child is not None]
    others = [child for child in children if draw not in _single(child)]
    if len(others) == len(children):
        return False
    return any(r.node in own for r in GraphTraversal(others, limit=_MAX_NODES))


def _single(node: Any) -> tuple[Any, ...]:
    """A node and those behind it as long as each has one input."""
    found = [node]
    while len(behind := [n for n, _ in found[-1].next_functions if n is not None]) == 1:
        found.append(behind[0])
        if _is_draw(found[-1]):
            break
    return tuple(found)
