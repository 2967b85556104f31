"""Inputs of a derivative whose numbers alone are read, out of parameters.

`p.data = theta[:3]` in a function of `theta`: the model computes with the numbers of `theta`, and
the derivative with respect to it knows only the other terms.  What is computed of an input before
it is written, as the solution of an inner problem, may be held fixed on purpose, and a tensor
beside it may keep it as an anchor; what a model computes with a mere copy was meant to depend on
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import Parameter

from ...nodes import GraphTraversal
from ..observe.event_log import EventLog
from ..observe.tensor_facts import is_plain, storage
from .finding import CandidateFault, Mark, Marks, weak
from .graph_cuts import Cuts, CutSite, leaves_above

_LOOKS = 4  #: at the derivatives of one cut
_MAX_WALK = 5_000
_MAX_STARTS = 16  #: of a part with the same first number


class CopiedInputs:
    """Looks at the graph of a derivative where numbers of its inputs were written since the last
    one."""

    def __init__(self, log: EventLog, cuts: Cuts) -> None:
        self._log = log
        self._cuts = cuts
        self._last = 0
        self._looks: Counter[int] = Counter()
        self.found: dict[int, CandidateFault] = {}

    def begin(self) -> None:
        """A cell begins."""
        self.found.clear()
        self._looks.clear()

    def before_backward(
        self, roots: tuple[Tensor, ...], inputs: tuple[Tensor, ...], mark: Mark
    ) -> None:
        """A derivative with respect to `inputs` is about to be computed."""
        since, self._last = self._last, mark.clock
        fresh = [c for c in self._cuts.cuts.values() if c.clock > since and c.above]
        for given in inputs if fresh else ():
            above = {id(t) for t in leaves_above(given) if not isinstance(t, Parameter)}
            asked = {c.site: c for c in fresh if above & c.above.keys() and self._is_open(c)}
            for cut in asked.values():
                self._looks[cut.site] += 1
            for leaf, cut, used in self._read(roots, asked) if asked else ():
                if _is_part(leaf, given):
                    self._tell(leaf, given, cut, used, mark)
                    break

    def _is_open(self, cut: CutSite) -> bool:
        return cut.site not in self.found and self._looks[cut.site] < _LOOKS

    def _read(
        self, roots: tuple[Tensor, ...], asked: dict[int, CutSite]
    ) -> Iterator[tuple[Parameter, CutSite, Mark]]:
        """The parameters that got what left at these, and where the graph read them afterwards."""
        for reached in GraphTraversal((r.grad_fn for r in roots), limit=_MAX_WALK):
            for child, _ in reached.node.next_functions:
                leaf = getattr(child, "variable", None)
                if type(leaf) is not Parameter:
                    continue
                for cut in self._left_into(leaf, asked):
                    made = self._log.maker_of(reached.sequence)
                    if made is not None and made.clock > cut.clock:
                        yield leaf, cut, Mark(made.site, made.clock)

    def _left_into(self, leaf: Parameter, asked: dict[int, CutSite]) -> list[CutSite]:
        """Those by which it got its numbers: as what was traced, or as memory that it had before,
        where the derivative is taken at the values of an earlier call."""
        sites, kept = {cut.site for cut in self._cuts.behind(leaf)}, storage(leaf)
        return [c for c in asked.values() if c.site in sites or c.memory == kept != 0]

    def _tell(self, leaf: Tensor, given: Tensor, cut: CutSite, used: Mark, mark: Mark) -> None:
        marks: Marks = {"cut": (Mark(cut.site, cut.clock),), "used": (used,), "backward": (mark,)}
        evidence = {
            "way": "input",
            "parameters": (weak(given),),
            "shapes": (str(list(given.shape)),),
            "reader": weak(leaf),
            "read_shape": str(list(leaf.shape)),
        }
        self.found[cut.site] = CandidateFault("graph-cut", marks, evidence)


def _is_part(leaf: Parameter, given: Tensor) -> bool:
    """Whether the numbers of a leaf are some of those of another tensor, one behind the other."""
    if not is_plain(given) or storage(leaf) == 0 or not 0 < leaf.numel() <= given.numel():
        return False
    part, whole = leaf.detach().reshape(-1), given.detach().reshape(-1)
    if part.dtype != whole.dtype or part.device != whole.device:
        return False
    starts = (whole[: whole.numel() - part.numel() + 1] == part[0]).nonzero()[:_MAX_STARTS]
    return any(torch.equal(whole[i : i + part.numel()], part) for i in starts.flatten().tolist())
