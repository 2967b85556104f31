"""What a torch.fx module hands out for a node, and a later node has written in place.

The graph says which node writes what an earlier one has made; the log, that it did so in a call;
the backward, that a loss is computed of what was handed out.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from torch import Tensor, fx, nn

from ...nodes import GraphTraversal
from ..observe.event_log import EventLog
from ..observe.tensor_facts import storage, version
from .finding import CandidateFault, Mark, Marks, Weak, weak

_MAX_NODES = 2_000
_MAX_HANDED = 1_000
#: Those of Python's operators that write their first argument: `operator.iadd`.
_OPERATORS = frozenset(
    getattr(operator, f"i{name}")
    for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split()
)
#: What may hand on the memory of its input, by the names of functions, methods and layers.
_VIEWS = frozenset(
    "view view_as reshape flatten unflatten squeeze unsqueeze transpose permute t expand narrow "
    "select detach contiguous identity dropout dropout1d dropout2d dropout3d chunk split unbind "
    "getitem to float".split()
)


class WrittenOutput(NamedTuple):
    """`key` leads to it in what the call gives: a position, a key, None for the whole."""

    key: Any
    node: str
    writer: str
    layer: bool  #: whether the writer is a layer with a flag for it


class _HandedOut(NamedTuple):
    """`end` is the number of the first node behind the call."""

    tensor: Weak
    output: WrittenOutput
    module: weakref.ref[nn.Module]
    call: Mark
    end: int


class GraphOutputs:
    """Follows the outputs that were written, until a backward comes through one."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._told: dict[int, CandidateFault] = {}  #: by the site of the call, the last one
        self._known: weakref.WeakKeyDictionary[fx.Graph, tuple[WrittenOutput, ...]]
        self._known = weakref.WeakKeyDictionary()
        self._handed: dict[int, _HandedOut] = {}  #: by the number of what made its value

    @property
    def found(self) -> list[CandidateFault]:
        return [*self._told.values()]

    def begin(self) -> None:
        """A cell begins."""
        self._told.clear()
        self._handed.clear()
        self._known.clear()  # a layer's flag may be another one by now

    def written(self, module: Any) -> tuple[WrittenOutput, ...]:
        """The outputs of a graph module that a node behind them writes, as its graph says."""
        graph = getattr(module, "graph", None)
        if not isinstance(graph, fx.Graph) or not isinstance(module, nn.Module):
            return ()
        if graph not in self._known:
            self._known[graph] = tuple(_written(module, graph))
        return self._known[graph]

    def handed_out(
        self,
        module: nn.Module,
        outputs: tuple[WrittenOutput, ...],
        result: Any,
        since: int,
        site: int,
        end: int,
    ) -> None:
        """A call that began at the time `since` has given `result`."""
        writes = {(w.storage, w.after) for w in self._log.writes_after(since)}
        for output in outputs:
            value = _value(result, output.key)
            if not isinstance(value, Tensor) or value._base is not None or value.grad_fn is None:
                continue
            known = (storage(value), version(value)) in writes
            if known and len(self._handed) < _MAX_HANDED:
                mark = Mark(site, self._log.tick())
                handed = _HandedOut(weak(value), output, weakref.ref(module), mark, end)
                self._handed[value.grad_fn._sequence_nr()] = handed

    def before_backward(self, roots: Iterable[Tensor], backward: Mark) -> None:
        """Whether what a call handed out was used in the loss: by a node behind the call."""
        if not self._handed:
            return
        first = min(handed.end for handed in self._handed.values())
        used: set[int] = set()
        for reached in GraphTraversal((r.grad_fn for r in roots), limit=_MAX_NODES):
            if reached.sequence < first:
                break
            for child, _ in reached.node.next_functions:
                handed = None if child is None else self._handed.get(child._sequence_nr())
                if handed is not None and reached.sequence >= handed.end:
                    used.add(child._sequence_nr())
        by_site: dict[int, list[_HandedOut]] = {}
        for number in sorted(used):
            handed = self._handed.pop(number)
            by_site.setdefault(handed.call.site, []).append(handed)
        self._told |= {site: _told(found, backward) for site, found in by_site.items()}


def _told(handed: list[_HandedOut], backward: Mark) -> CandidateFault:
    """The finding about what one call has given."""
    marks: Marks = {"changed": (handed[0].call,), "backward": (backward,)}
    evidence = {
        "way": "handed_out",
        "tensor": handed[0].tensor,
        "module": handed[0].module,
        "outputs": tuple(h.output for h in handed),
    }
    return CandidateFault("kept-output-overwritten", marks, evidence)


def _written(module: nn.Module, graph: fx.Graph) -> Iterator[WrittenOutput]:
    """The outputs that a later node writes in place; nodes stand in the order in which they run."""
    owner: dict[fx.Node, fx.Node] = {}  # whose memory a node's value is, as far as names tell
    made: dict[fx.Node, int] = {}
    writers: dict[fx.Node, tuple[int, fx.Node]] = {}
    for number, node in enumerate(graph.nodes):
        first = node.args[0] if node.args and isinstance(node.args[0], fx.Node) else None
        writes = first is not None and _writes(module, node)
        shares = writes or _name(module, node) in _VIEWS
        owner[node] = owner[first] if first is not None and shares else node
        made[node] = number
        if writes:
            writers[owner[node]] = number, node
    for key, node in _outputs(graph):
        last, writer = writers.get(owner[node], (0, node))
        if last > made[node]:
            flag = writer.op == "call_module"
            yield WrittenOutput(key, _shown(node), _shown(writer), flag)


def _outputs(graph: fx.Graph) -> Iterator[tuple[Any, fx.Node]]:
    for end in graph.find_nodes(op="output"):
        given = end.args[0]
        pairs: Iterable[tuple[Any, Any]] = [(None, given)]
        if isinstance(given, dict):
            pairs = given.items()
        elif isinstance(given, (list, tuple)):
            pairs = enumerate(given)
        yield from ((key, node) for key, node in pairs if isinstance(node, fx.Node))


def _value(result: Any, key: Any) -> Any:
    """What the call has given for an output."""
    if key is None:
        return result
    try:
        return result[key]
    except (KeyError, IndexError, TypeError):
        return None


def _writes(module: nn.Module, node: fx.Node) -> bool:
    """Whether it writes its first argument."""
    if node.op == "call_module":
        layer = _layer(module, node)
        idle = isinstance(layer, nn.modules.dropout._DropoutNd) and not layer.training
        return getattr(layer, "inplace", False) is True and not idle
    if node.op == "call_function" and node.target in _OPERATORS:
        return True
    name = _name(module, node)
    return node.kwargs.get("inplace") is True or (name.endswith("_") and name[:1] != "_")


def _layer(module: nn.Module, node: fx.Node) -> nn.Module | None:
    try:
        return module.get_submodule(str(node.target))
    except AttributeError:
        return None


def _name(module: nn.Module, node: fx.Node) -> str:
    """Of the function, the method or the layer's class."""
    if node.op == "call_module":
        return type(_layer(module, node)).__name__.lower()
    return str(getattr(node.target, "__name__", node.target))


def _shown(node: fx.Node) -> str:
    """The path of a layer, else the node's name."""
    return str(node.target) if node.op == "call_module" else node.name
