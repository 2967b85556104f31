"""Where the gradient on the way to a value got lost.

`trace` walks the computation of a value backwards.  A *cut* is an expression whose result carries
no gradient although something it read does.  Live tensors decide where a name still holds them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from .container_writes import insertions
from .cut_kinds import CutKind, cut_of, is_about_shape, makes_leaf, takes_derivative
from .expression import ExprAt
from .grad_mode import Off, switched_off_around
from .reaching_definitions import Each, key_of
from .slicer import Slicer
from .syntax import FACTORIES, is_container

_MAX_DEPTH = 60
_DISPLAYS = (ast.List, ast.Dict, ast.ListComp, ast.DictComp)
_NO_PARAMETERS = (
    "torch.nn.modules.activation",
    "torch.nn.modules.loss",
    "torch.nn.modules.pooling",
    "torch.nn.modules.dropout",
    "torch.nn.modules.flatten",
    "torch.nn.modules.padding",
    "torch.nn.modules.upsampling",
    "torch.nn.modules.fold",
)


@dataclass(frozen=True, eq=False)
class Cut:
    """An expression at which gradient stopped.

    `operand` is what still carried it, `off` what had turned recording off, `trained` whether an
    optimizer holds something behind it.  `trail` are the names under which the value without
    gradient was handed on, nearest first; `later` are the operations after it that would cut
    once more (`torch.tensor(losses)` behind an `.item()`), nearest first.
    """

    kind: CutKind
    spot: ExprAt
    operand: ExprAt
    off: Off | None = None
    trained: bool = False
    trail: tuple[ExprAt, ...] = ()
    later: tuple[tuple[CutKind, ExprAt], ...] = ()


@dataclass(frozen=True, eq=False)
class GradientTrace:
    """Whether a value carries gradient, and the cuts on the way to it, nearest first.

    `frozen` are called modules whose parameters all have requires_grad=False, `stuck` those of them
    that an optimizer holds and before which nothing trained was cut off.
    """

    carries: bool
    cuts: tuple[Cut, ...] = ()
    trained: bool = False  #: the gradient would reach something an optimizer holds
    frozen: tuple[ExprAt, ...] = ()
    stuck: tuple[ExprAt, ...] = ()


_NOTHING = GradientTrace(False)


class GradientTracer:
    """Answers for one failure; remembers what it has walked."""

    def __init__(
        self, slicer: Slicer, held: Sequence[torch.Tensor] = (), *, indices: bool = False
    ) -> None:
        self.slicer = slicer
        self._given = (slicer, held)
        self._held = {id(p) for p in held}
        self._indices = indices  #: whether what a tensor is indexed with is followed, too
        self._known: dict[tuple[object, ...], GradientTrace] = {}

    @cached_property
    def through_indices(self) -> GradientTracer:
        """One that follows what tensors are indexed with, too: no gradient ever passes there."""
        return GradientTracer(*self._given, indices=True)

    def holds(self, tensors: Iterable[torch.Tensor]) -> bool:
        """Whether an optimizer was given one of the tensors."""
        return any(id(t) in self._held for t in tensors)

    def trace(self, spot: ExprAt, depth: int = 0) -> GradientTrace:
        """What is known of the gradient behind `spot`."""
        mark = (id(spot.node), id(spot.scope.body), id(spot.scope.call), spot.path)
        if depth > _MAX_DEPTH:
            return _NOTHING
        if mark not in self._known:
            self._known[mark] = _NOTHING  # a loop adds nothing to itself
            self._known[mark] = self._trace(spot, depth)
        return self._known[mark]

    def cut_at(self, spot: ExprAt) -> Cut | None:
        """How an expression cuts of which it is known that it read a value with gradient."""
        kind, off = cut_of(self.slicer, spot), switched_off_around(self.slicer, spot)
        if kind is None and off is None:
            return None
        return Cut(kind or CutKind.NO_GRAD, spot, self._carrying(spot, 0), None if kind else off)

    def _trace(self, spot: ExprAt, depth: int) -> GradientTrace:
        tensor = self.slicer.tensor(spot)
        if tensor is not None and tensor.requires_grad:
            return GradientTrace(True, (), self._reaches_held(tensor))
        makers = self.slicer.makers(spot)
        parts = [self.trace(element, depth + 1) for element in elements_of(spot, makers)]
        parts += self._written(spot, makers, depth + 1)
        return _join([*(_through(m, self._of_maker(m, depth + 1)) for m in makers), *parts])

    def _written(
        self, spot: ExprAt, makers: Iterable[ExprAt], depth: int
    ) -> Iterator[GradientTrace]:
        """What was stored into a tensor that began without a graph: `out[i] = net(x).item()`."""
        if spot.path or spot.key is None or not any(m.called in FACTORIES for m in makers):
            return
        for value in insertions(self.slicer, spot, Each.ITEM):
            found = self.trace(value, depth)
            cuts = tuple(replace(c, trail=c.trail or (spot,)) for c in found.cuts)
            yield replace(found, cuts=cuts)

    def _reaches_held(self, tensor: torch.Tensor) -> bool:
        if not self._held:
            return False
        pending, seen = [tensor.grad_fn], 0
        if id(tensor) in self._held:
            return True
        while pending and seen < 2_000:
            node = pending.pop()
            seen += 1
            if node is None:
                continue
            if id(getattr(node, "variable", None)) in self._held:
                return True
            pending.extend(fn for fn, _ in node.next_functions)
        return False

    def _of_maker(self, maker: ExprAt, depth: int) -> GradientTrace:
        node = maker.node
        if isinstance(node, (ast.Constant, ast.Lambda)) or is_about_shape(node):
            return _NOTHING
        if makes_leaf(node):
            return GradientTrace(True, (), True)
        tensor = self.slicer.tensor(maker)
        if tensor is not None and tensor.requires_grad:
            return GradientTrace(True, (), self._reaches_held(tensor))
        read = _join([self.trace(o, depth) for o in self._operands(maker)])
        of_modules = self._of_modules(maker)
        if any(c.trained for c in read.cuts):
            of_modules = replace(of_modules, stuck=())
        read = _join([read, of_modules])
        kind = cut_of(self.slicer, maker)
        if kind is None:
            return self._recorded(maker, read, depth)
        of_leaf = kind is CutKind.GRADIENT and isinstance(node, ast.Attribute)
        if not read.carries and not of_leaf:  # whatever has a `.grad` requires grad
            cuts = tuple(replace(c, later=(*c.later, (kind, maker))) for c in read.cuts)
            return replace(read, cuts=cuts)
        return GradientTrace(
            False, (Cut(kind, maker, self._carrying(maker, depth), None, read.trained),)
        )

    def _recorded(self, maker: ExprAt, read: GradientTrace, depth: int) -> GradientTrace:
        off = switched_off_around(self.slicer, maker) if read.carries else None
        if off is None:
            return read
        cut = Cut(CutKind.NO_GRAD, maker, self._carrying(maker, depth), off, read.trained)
        return GradientTrace(False, (cut,))

    def _carrying(self, maker: ExprAt, depth: int) -> ExprAt:
        operands = self._operands(maker)
        return next((o for o in operands if self.trace(o, depth).carries), maker)

    def _operands(self, maker: ExprAt) -> list[ExprAt]:
        node = maker.node
        index = [node.slice] if self._indices and isinstance(node, ast.Subscript) else []
        return [*self.slicer.operands(maker), *map(maker.inside, index)]

    def _of_modules(self, maker: ExprAt) -> GradientTrace:
        """What the parameters of a module bring that is called, differentiated, or asked for its
        state."""
        if not isinstance(maker.node, ast.Call):
            return _NOTHING
        owner = maker.receiver if maker.called == "state_dict" else None
        if takes_derivative(self.slicer.value(ExprAt(maker.scope, maker.node.func))):
            owner = maker.argument(0, "func")
        module = self.slicer.value(owner or ExprAt(maker.scope, maker.node.func))
        if isinstance(module, torch.nn.Module):
            return self._of_parameters(maker, list(module.parameters()))
        return (
            GradientTrace(True, (), True) if self._is_fresh_module(maker.node, maker) else _NOTHING
        )

    def _of_parameters(self, maker: ExprAt, parameters: list[torch.nn.Parameter]) -> GradientTrace:
        if not parameters:
            return _NOTHING
        if any(p.requires_grad for p in parameters):
            return GradientTrace(True, (), self.holds(parameters))
        assert isinstance(maker.node, ast.Call)
        called = (ExprAt(maker.scope, maker.node.func),)
        return GradientTrace(False, (), False, called, called if self.holds(parameters) else ())

    def _is_fresh_module(self, node: ast.Call, maker: ExprAt) -> bool:
        """A call of a module that no longer lives: `layer(x)` after `layer = nn.Linear(…)`."""
        if key_of(node.func) is None:
            return False
        for made in self.slicer.makers(ExprAt(maker.scope, node.func)):
            if isinstance(made.node, ast.Call):
                cls = self.slicer.value(ExprAt(made.scope, made.node.func))
                if isinstance(cls, type) and issubclass(cls, torch.nn.Module):
                    return not cls.__module__.startswith(_NO_PARAMETERS)
        return False


def elements_of(spot: ExprAt, makers: Iterable[ExprAt]) -> list[ExprAt]:
    """The elements of a container that is used as a whole (`torch.stack(self.losses)`)."""
    filled = any(is_container(m.node) or isinstance(m.node, _DISPLAYS) for m in makers)
    if spot.path or not filled:
        return []
    return [ExprAt(spot.scope, spot.node, (part,)) for part in (Each.ITEM, Each.VALUE)]


def _through(maker: ExprAt, trace: GradientTrace) -> GradientTrace:
    """Note the names that a maker's value went through, nearest to the cut."""
    if not maker.via:
        return trace
    names = tuple(reversed(maker.via))
    cuts = tuple(replace(c, trail=c.trail or names) for c in trace.cuts)
    return replace(trace, cuts=cuts)


def _join(traces: Sequence[GradientTrace]) -> GradientTrace:
    """Several sources of one value: it carries gradient if one does; all cuts count."""
    cuts = {id(c.spot.node): c for t in traces for c in t.cuts}
    return GradientTrace(
        any(t.carries for t in traces),
        tuple(cuts.values()),
        any(t.trained for t in traces),
        _each_once(s for t in traces for s in t.frozen),
        _each_once(s for t in traces for s in t.stuck),
    )


def _each_once(spots: Iterable[ExprAt]) -> tuple[ExprAt, ...]:
    """By the expression and whose it is: `self.net` of two objects is two modules."""
    return tuple({(id(s.node), id(s.scope.receiver)): s for s in spots}.values())


def best_cut(cuts: Sequence[Cut]) -> Cut | None:
    """The cut to blame: one behind which something is trained, the nearest of those."""
    return next((c for c in cuts if c.trained), cuts[0] if cuts else None)
