"""Where a NaN of the backward pass comes from: the node, its forward line, its saved input.

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
from ...program import Program, Source
from ..dataflow import ExprAt
from ..live.graph import GraphNode
from ..scene import Scene

_FRAME = re.compile(r'File "(.+?)", line (\d+), in ')
#: At which value of which operand the derivative is infinite or undefined.
_EDGES = {
    "SqrtBackward0": (0, "0"),
    "RsqrtBackward0": (0, "0"),
    "LogBackward0": (0, "0"),
    "Log2Backward0": (0, "0"),
    "Log10Backward0": (0, "0"),
    "DivBackward0": (1, "0"),
    "ReciprocalBackward0": (0, "0"),
    "AcosBackward0": (0, "1"),
    "AsinBackward0": (0, "1"),
    "Atan2Backward0": (0, "0"),
}
#: Functions whose node is named after another one.
_ALIASES = {"square": ("pow",), "divide": ("div",), "norm": ("linalgvectornorm",)}


@dataclass(frozen=True, eq=False)
class NanSource:
    """`operation` is the expression at `place` that recorded the node `name`; `value` ("0", "1",
    "inf", "nan") stands in its `operand`, whose live tensor is `tensor` where it has a name."""

    name: str
    place: Place | None
    operation: ast.expr | None
    operand: str = ""
    value: str = ""
    tensor: torch.Tensor | None = None


def find(scene: Scene) -> NanSource | None:
    """The operation that the NaN comes from; None where the graph does not show it.

    Anomaly mode names the first node with a NaN.  Where that one got an infinite gradient, what
    to change is the operation behind it, towards the root, that made it infinite.  The nodes that
    ran have freed what they saved, so the values are those of the user's names.
    """
    name = scene.match.captures.get("op", "")
    named = [n for n in scene.graph.nodes if n.name == name]
    for node in (*named, *_behind(scene, named)):
        found = _source(scene, node)
        if found.value:
            return found
    return _source(scene, named[0]) if len(named) == 1 else None


def _behind(scene: Scene, named: Sequence[GraphNode]) -> Iterator[GraphNode]:
    """The nodes whose gradients flow into the named one, nearest first, of known edges only."""
    pending, seen = list(named[:1]), set[int]()
    while pending and len(seen) < 200:
        for parent in scene.graph.parents(pending.pop(0)):
            if id(parent) not in seen:
                seen.add(id(parent))
                pending.append(parent)
                if parent.name in _EDGES:
                    yield parent


def _source(scene: Scene, node: GraphNode) -> NanSource:
    source, place, call = _forward(scene.program, node)
    if source is None or place is None or call is None:
        return NanSource(node.name, place, None)
    at = source.place(call.lineno, place.function, call)
    position, edge = _EDGES.get(node.name, (0, ""))
    operands = _operands(call)
    for number, operand in enumerate(operands):
        tensor = _live(scene, source, operand)
        values = ("nan", "inf", *((edge,) if edge and number == position else ()))
        found = None if tensor is None else next((v for v in values if _holds(tensor, v)), None)
        if found is not None:
            return NanSource(node.name, at, call, ast.unparse(operand), found, tensor)
    return NanSource(node.name, at, call)


def _live(scene: Scene, source: Source, operand: ast.expr) -> torch.Tensor | None:
    """The operand's value where it has a name that still holds it."""
    slicer = scene.slicer
    value = slicer.value(ExprAt(slicer.top(source), operand))
    return value if isinstance(value, torch.Tensor) else None


def _holds(tensor: torch.Tensor, value: str) -> bool:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return False
    if value == "nan":
        return bool(tensor.isnan().any())
    if value == "inf":
        return bool(tensor.isinf().any())
    return bool((tensor.abs() == float(value)).any())


def _forward(
    program: Program, node: GraphNode
) -> tuple[Source | None, Place | None, ast.expr | None]:
    """The innermost user line of the forward call, and the operation there."""
    for filename, line in _frames(node):
        source = program.source(filename)
        if source is not None:
            place = program.place(filename, line)
            return source, place, operation_named(source, line, node.name)
    return None, None, None


def _frames(node: GraphNode) -> Iterator[tuple[str, int]]:
    """The frames of the forward stack, innermost first."""
    lines = node.node.metadata.get("traceback_", ())
    text = "".join(map(str, lines))
    yield from ((m[1], int(m[2])) for m in reversed(list(_FRAME.finditer(text))))


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
        name = str(getattr(node.func, "attr", getattr(node.func, "id", "")))
        return name.strip("_").replace("_", "").lower()
    kinds = {ast.Div: "div", ast.Mult: "mul", ast.Pow: "pow", ast.Sub: "sub", ast.Add: "add"}
    return kinds.get(type(node.op), "") if isinstance(node, ast.BinOp) else ""


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if not isinstance(node, ast.Call):
        return []
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    of_torch = inner is None or ast.unparse(inner) in ("torch", "F")
    return [*([] if of_torch or inner is None else [inner]), *node.args]


def forward_operation(scene: Scene, name: str) -> tuple[Place, str] | None:
    """The one call of an operation (`nextafter`) in the cells that ran, with its text."""
    found = [
        (source.place(node.lineno, None, node), ast.unparse(node))
        for source, node in scene.index.nodes(ast.Call)
        if _word(node) == name.strip("_").replace("_", "")
    ]
    return found[0] if len(found) == 1 else None
