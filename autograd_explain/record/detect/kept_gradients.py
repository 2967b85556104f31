"""Gradients that the program keeps as a state of its own, without a copy.

`velocity[p] = p.grad` keeps the tensor that every backward adds to and that a reset in place wipes.
`v.mul_(mu).add_(p.grad)` then adds that tensor to itself.  Gathered here are such writes of a
gradient by itself; the text tells that it has two names there, and where it was kept.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType

from torch import Tensor

from ...arguments import values_given
from ...inspect.dataflow.syntax import first_parameter
from ...model import Place
from ...program import Program, Source, own_nodes
from ...program_index import index_of
from ..observe.call_sites import CallFrame, CallSites
from ..observe.code_positions import CodePosition, operands_of, spot_of
from .data_write_derivative import base_of_chain
from .finding import CandidateFault, Mark, Marks, Weak, weak
from .kept_readers import put_there
from .kept_values import Holder, holders_of
from .number_into_loss import spread
from .unused_gradients import Gradients

_LOOKS = 4  #: at the writes of one site
_GIVING = (ast.Assign, ast.AnnAssign, ast.For, ast.comprehension)


@dataclass(frozen=True)
class WrittenByItself:
    """The gradient of a leaf was an operand of the write to it."""

    gradient: Weak
    mark: Mark
    backward: int  #: the time of the one before
    holders: tuple[Holder, ...]


class KeptGradients:
    """Gathers such writes of a cell, one of each site: those that come again with the same gradient
    behind another backward.  Once it may be the first value of a state, right as it is."""

    def __init__(self) -> None:
        self.found: dict[int, WrittenByItself] = {}
        self._first: dict[int, WrittenByItself] = {}
        self._looks: Counter[int] = Counter()

    def begin(self) -> None:
        """A cell begins."""
        self.found.clear()
        self._first.clear()
        self._looks.clear()

    def wrote(
        self,
        tensor: Tensor,
        gradients: Gradients,
        frame: FrameType,
        steps: Sequence[CallFrame],
        mark: Mark,
    ) -> None:
        """A tensor was written by itself by a call at these steps, below `frame`."""
        backward, first = gradients.last_backward.clock, self._first.get(mark.site)
        if first is not None:
            if first.gradient() is tensor and first.backward < backward:
                self.found.setdefault(mark.site, first)
        elif self._looks[mark.site] < _LOOKS:
            self._looks[mark.site] += 1
            if any(leaf.grad is tensor for leaf in gradients.leaves):
                held = tuple(holders_of(tensor, frame, steps))
                self._first[mark.site] = WrittenByItself(weak(tensor), mark, backward, held)


def kept_gradients(
    found: Iterable[WrittenByItself], backward: Mark, sites: CallSites, program: Program
) -> Iterator[CandidateFault]:
    """Those that the text keeps in a container or an attribute, by another name than the one by
    which it adds them."""
    told = set[Place]()
    for written in found:
        spots = [spot_of(program, step) for step in sites.all[written.mark.site].steps]
        target = None if not spots or spots[0] is None else _written_by_another_name(spots[0])
        for holder in written.holders if target is not None else ():
            spot = spots[holder.level] if holder.level < len(spots) else None
            kept = [] if spot is None else [*_kept_at(spot, holder, program)]
            if kept and told.isdisjoint(place for place, _ in kept):
                told.update(place for place, _ in kept)
                marks: Marks = {"changed": (written.mark,), "backward": (backward,)}
                evidence = {
                    "way": "gradient",
                    "tensor": written.gradient,
                    "kept": holder.path,
                    "written": target,
                    "copied": tuple(kept),
                }
                yield CandidateFault("kept-output-overwritten", marks, evidence)


def _written_by_another_name(spot: CodePosition) -> str | None:
    """`v` of `v.mul_(mu).add_(g)`; None of `g.add_(g)`, which says that it doubles."""
    node = spot.node
    operands = operands_of(node)
    target, given = (operands[0], operands[1:]) if operands else (None, [])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        target = base_of_chain(node.func.value)
        given = values_given(node)
    own = "" if target is None else ast.unparse(target)
    return own if own and own not in map(ast.unparse, given) else None


def _kept_at(spot: CodePosition, holder: Holder, program: Program) -> Iterator[tuple[Place, str]]:
    """The expressions by which the function, or its class, has put a gradient there."""
    owner, attribute, _ = holder.path.rpartition(".")
    if not holder.times and not attribute:
        return  # a name of the function's own
    scope, source = spot.scope, spot.source
    own = isinstance(scope, ast.FunctionDef) and bool(owner) and first_parameter(scope) == owner
    within = next((n for n in source.around(scope) if isinstance(n, ast.ClassDef)), None)
    bodies = [(source, within if own and within is not None else scope)]
    if isinstance(scope, ast.Module):
        bodies = [(run, run.tree) for run in index_of(program).runs if run.cell is not None]
    for text, body in bodies:
        for node in ast.walk(body):
            yield from _gradients_put(text, node, holder.path)


def _gradients_put(source: Source, node: ast.AST, path: str) -> Iterator[tuple[Place, str]]:
    for kept in put_there(node, path):
        function = source.function_around(kept)
        if ast.unparse(kept) in _gradients(function or source.tree):
            name = getattr(function, "name", None)
            yield source.place(kept.lineno, name, kept), ast.unparse(kept)


def _gradients(body: ast.AST) -> set[str]:
    """What a function calls gradients: `p.grad`, and the names that got one."""
    nodes = [*own_nodes(body)]
    read = {ast.unparse(n) for n in nodes if isinstance(n, ast.Attribute) and n.attr == "grad"}
    return spread([n for n in nodes if isinstance(n, _GIVING)], read)
