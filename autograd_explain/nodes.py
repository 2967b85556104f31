"""Walking the autograd graph without recursion, and no deeper than the stack bears.

torch 2.13 frees a chain of nodes without recursion only while Python has not looked at it: each
node whose `next_functions` were read has a Python wrapper, and a chain of wrappers dies one
inside the other.  Some 45,000 of them overflow a stack of 8 MiB and end the process.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

#: Arguments of torch's engine (`_engine_run_backward`), after its outputs.
CREATE_GRAPH, INPUTS = 2, 3
#: The smallest main stack in use (Windows).
_STACK = 2**20
#: Bytes of stack that one wrapper takes as it dies, with a margin of two.
_WRAPPER = 400
_DEEPEST = 20_000
#: The operations whose result is their input's memory, named as their nodes are (torch 2.13: what
#: `Tensor._is_view` tells of the results of all of them, and the two inside `reshape`).
_VIEWS = frozenset(
    "T Transpose Permute View ReshapeAlias UnsafeView Unsqueeze Squeeze Expand Select Slice Split "
    "SplitWithSizes Unbind AsStrided Diagonal Alias Unfold ViewAsComplex ViewAsReal Conj "
    "NegView".split()
)


class Reached(NamedTuple):
    """A node, its sequence number, and its longest distance from a start."""

    node: Any
    sequence: int
    depth: int


def start_of(root: Any) -> Any:
    """The node that a tensor came from, or that a GradientEdge (a tuple) points at."""
    return getattr(root, "node", None) if isinstance(root, tuple) else root.grad_fn


class GraphTraversal:
    """The nodes behind some starts, newest first, each once.

    Nodes come by falling sequence number, so a node comes after all that use it and its depth is
    known when its turn comes.  `complete` is False where a bound (number, time, depth) left nodes
    out; it is settled when the walk has ended.
    """

    def __init__(
        self, starts: Iterable[Any], *, limit: int = 200_000, seconds: float | None = None
    ) -> None:
        self.complete = True
        self._starts = tuple(s for s in starts if s is not None)
        self._limit = limit
        self._stop = None if seconds is None else time.monotonic() + seconds

    def __iter__(self) -> Iterator[Reached]:
        deepest = deepest_walk()
        depth: dict[Any, int] = {}
        heap: list[tuple[int, int, Any]] = []

        def reach(node: Any, at: int) -> None:
            if node not in depth:
                heapq.heappush(heap, (-sequence_of(node), len(depth), node))
            depth[node] = max(at, depth.get(node, 0))

        for start in self._starts:
            reach(start, 0)
        while heap:
            negative, count, node = heapq.heappop(heap)
            if len(depth) > self._limit or self._late(count):
                self.complete = False
                return
            yield Reached(node, -negative, depth[node])
            if depth[node] >= deepest:
                self.complete = False
                continue
            for child, _ in node.next_functions:
                if child is not None:
                    reach(child, depth[node] + 1)

    def leaves(self) -> Iterator[Any]:
        """The tensors into which a backward from the starts accumulates, in the walk's order."""
        ends = (r.node for r in self if type(r.node).__name__ == "AccumulateGrad")
        return (node.variable for node in ends)

    def _late(self, count: int) -> bool:
        late = self._stop is not None and count % 1024 == 0
        return late and self._stop is not None and time.monotonic() > self._stop


def is_view(name: str) -> bool:
    """Whether what made a node of this name (`TBackward0`) hands its input's memory on."""
    return name.rstrip("0123456789").removesuffix("Backward") in _VIEWS


def sequence_of(node: Any) -> int:
    """The number by which nodes are ordered in time; leaves have the largest possible one."""
    try:
        return int(node._sequence_nr())
    except Exception:
        return -1


def deepest_walk() -> int:
    """How deep to look, from the size of this thread's stack."""
    size = threading.stack_size() or _STACK
    try:
        import resource

        soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
        if not threading.stack_size() and soft > 0:
            size = min(soft, 8 * _STACK)
    except (ImportError, OSError):  # Windows has no such limit to ask for
        pass
    return min(size // _WRAPPER, _DEEPEST)
