"""Where a NaN of the backward pass comes from: the node, and its line of the forward pass.

With anomaly mode on, torch keeps the Python stack of the forward call in the node's metadata
(`traceback_`, torch/csrc/autograd/python_anomaly_mode.cpp).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from ...model import Place
from ...program import Source, called_name
from ..live.graph import GraphNode
from ..scene import Scene

_FRAME = re.compile(r'File "(.+?)", line (\d+), in ')
#: Functions whose node is named after another one.
_ALIASES = {
    "square": ("pow",),
    "div": ("reciprocal",),
    "divide": ("div", "reciprocal"),
    "norm": ("linalgvectornorm",),
}


@dataclass(frozen=True)
class Edge:
    """The operand (by its place) and its value ("": where the result overflows) at which a
    derivative is infinite or undefined, what the result is there ("" where it is a finite number),
    and bounds that keep away from it."""

    operand: int
    value: str
    result: str = ""
    floor: str = ""
    ceiling: str = ""


_ROOT, _LOG = Edge(0, "0", floor="1e-12"), Edge(0, "0", "-inf", floor="1e-12")
_INVERSE = Edge(0, "0", "inf")
_ARC = Edge(0, "1", floor="-0.999999", ceiling="0.999999")
_EDGES = {
    "ExpBackward0": Edge(0, ""),
    "Expm1Backward0": Edge(0, ""),
    "SqrtBackward0": _ROOT,
    "RsqrtBackward0": _INVERSE,
    "LogBackward0": _LOG,
    "Log2Backward0": _LOG,
    "Log10Backward0": _LOG,
    "DivBackward0": Edge(1, "0"),
    "ReciprocalBackward0": _INVERSE,
    "AcosBackward0": _ARC,
    "AsinBackward0": _ARC,
}


@dataclass(frozen=True)
class Frame:
    """A line of the forward stack."""

    filename: str
    line: int
    columns: None = None


@dataclass(frozen=True)
class NanSource:
    """A node whose derivative may be at fault, the user's lines that recorded it, innermost
    first, and the edge at which its derivative is infinite; None where none is known."""

    node: str
    frames: tuple[Frame, ...]
    edge: Edge | None = None
    name: str = ""

    @property
    def operand(self) -> int:
        return -1 if self.edge is None else self.edge.operand


def sources(scene: Scene) -> tuple[NanSource, ...]:
    """The operations that the NaN may come from, the likeliest first.

    Anomaly mode names the first node with a NaN.  One whose own derivative is finite got an
    infinite gradient: then an operation behind it, towards the root, made it infinite.
    """
    named = _failed(scene, scene.match.captures.get("op", ""))
    found = [_source(scene, node) for node in named]
    if not any(source.edge for source in found):
        found += [_source(scene, node) for node in _behind(scene, named)]
    return tuple(dict.fromkeys(found))


def _failed(scene: Scene, name: str) -> Sequence[GraphNode]:
    """The nodes of this name of which one failed; one alone where what it saved is freed.

    The engine runs nodes in the falling order of their numbers (`ReadyQueue`,
    torch/csrc/autograd/engine.h), so the oldest that ran is the one.
    """
    named = [n for n in scene.graph.nodes if n.name == name]
    ran = [n for n in named if n.freed_slots]
    return [min(ran, key=lambda n: n.sequence)] if ran else named


def _behind(scene: Scene, named: Sequence[GraphNode]) -> Iterator[GraphNode]:
    """The nodes with an edge whose gradients flow into the named ones, nearest first."""
    pending, seen = list(named), set[int]()
    while pending and len(seen) < 200:
        for parent in scene.graph.parents(pending.pop(0)):
            if id(parent) not in seen:
                seen.add(id(parent))
                edge = _edge(parent)
                if edge is not None and edge.value:
                    yield parent
                else:
                    pending.append(parent)


def _edge(node: GraphNode) -> Edge | None:
    if node.name != "PowBackward0":
        return _EDGES.get(node.name)
    exponent = getattr(node.node, "_saved_exponent", 1)
    if not isinstance(exponent, (int, float)) or exponent >= 1:
        return None
    return _ROOT if exponent > 0 else _INVERSE


def _source(scene: Scene, node: GraphNode) -> NanSource:
    own = (f for f in _frames(node) if scene.program.source(f.filename) is not None)
    return NanSource(node.name, tuple(own), _edge(node))


def holds(tensor: torch.Tensor, value: str) -> bool:
    """Whether a value ("nan", "inf", "0" or, of either sign, "1") stands in a tensor."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return False
    if value == "nan":
        return bool(tensor.isnan().any())
    if value == "inf":
        return bool(tensor.isinf().any())
    return bool((tensor.abs() == float(value)).any())


def _frames(node: GraphNode) -> Iterator[Frame]:
    """The frames of the forward stack, innermost first."""
    lines = node.node.metadata.get("traceback_", ())
    text = "".join(map(str, lines))
    yield from (Frame(m[1], int(m[2])) for m in reversed(list(_FRAME.finditer(text))))


def operation_named(source: Source, line: int, name: str) -> ast.expr | None:
    """The one expression on the line that does what the node is named after."""
    word = re.sub(r"Backward\d*$", "", name).lower()
    found = [
        n
        for n in ast.walk(source.tree)
        if isinstance(n, (ast.Call, ast.BinOp))
        and n.lineno <= line <= (n.end_lineno or 0)
        and word in (_word(n), *_ALIASES.get(_word(n), ()))
    ]
    return found[0] if len(found) == 1 else None


def _word(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return called_name(node).strip("_").replace("_", "").lower()
    kinds = {ast.Div: "div", ast.Mult: "mul", ast.Pow: "pow", ast.Sub: "sub", ast.Add: "add"}
    return kinds.get(type(node.op), "") if isinstance(node, ast.BinOp) else ""


def forward_operation(scene: Scene, name: str) -> tuple[Place, str] | None:
    """The one call of an operation (`nextafter`) in the cells that ran, with its text."""
    found = [
        (source.place(node.lineno, None, node), ast.unparse(node))
        for source, node in scene.index.nodes(ast.Call)
        if _word(node) == name.strip("_").replace("_", "")
    ]
    return found[0] if len(found) == 1 else None
