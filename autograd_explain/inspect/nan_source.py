"""Where a NaN of the backward pass comes from: the node, its forward line, its saved input.

With anomaly mode on, torch keeps the Python stack of the forward call in the node's metadata
(`traceback_`, torch/csrc/autograd/python_anomaly_mode.cpp).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from ..model import Place
from ..program import Program, Source
from .graph import GraphNode
from .scene import Scene

_FRAME = re.compile(r'File "(.+?)", line (\d+), in ')
#: Saved slots that are an operand of the operation, best first; "result" is what it gave.
_SLOTS = ("self", "other", "result", "exponent", "input")
#: At which values of which slot the derivative is infinite or undefined.
_EDGES = {
    "SqrtBackward0": {"result": ("0",)},
    "RsqrtBackward0": {"result": ("inf",)},
    "LogBackward0": {"self": ("0",)},
    "Log2Backward0": {"self": ("0",)},
    "Log10Backward0": {"self": ("0",)},
    "DivBackward0": {"other": ("0",)},
    "ReciprocalBackward0": {"result": ("inf",)},
    "PowBackward0": {"self": ("0",)},
    "PowBackward1": {"self": ("0",)},
    "AcosBackward0": {"self": ("1",)},
    "AsinBackward0": {"self": ("1",)},
    "Atan2Backward0": {"self": ("0",)},
}
#: Functions whose node is named after another one.
_ALIASES = {"square": ("pow",), "divide": ("div",), "norm": ("linalgvectornorm",)}


@dataclass(frozen=True, eq=False)
class NanSource:
    """`operation` is the expression at `place` that recorded the node `name`; `value` ("0", "1",
    "inf", "nan") stands in its `operand`, whose saved tensor is `tensor` where it was saved."""

    name: str
    place: Place | None
    operation: ast.expr | None
    operand: str
    value: str
    tensor: torch.Tensor | None


def find(scene: Scene) -> NanSource | None:
    """The node that the NaN comes from; None where the graph does not show it.

    Anomaly mode names the first node with a NaN.  Where that one got an infinite gradient, what
    to change is the operation behind it, towards the root, that made it infinite.
    """
    name = scene.match.captures.get("op", "")
    named = [n for n in scene.graph.nodes if n.name == name]
    saved = _saved(scene)
    for node in (*named, *_behind(scene, named)):
        value, slot, tensor = _bad_value(node.name, saved.get(id(node), {}))
        if value:
            return _source(scene.program, node, value, slot, tensor)
    return _source(scene.program, named[0], "", "", None) if len(named) == 1 else None


def _saved(scene: Scene) -> Mapping[int, Mapping[str, torch.Tensor]]:
    found: dict[int, dict[str, torch.Tensor]] = {}
    for slot in scene.graph.saved():
        found.setdefault(id(slot.node), {})[slot.name] = slot.tensor
    return found


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


def _source(
    program: Program, node: GraphNode, value: str, slot: str, tensor: torch.Tensor | None
) -> NanSource:
    source, place, call = _forward(program, node)
    operand = "" if call is None else _operand(call, slot)
    if slot == "result":  # an infinite or zero result comes of an input 0
        value, tensor = ("0", None) if value in ("0", "inf") else (value, None)
    at = source.place(call.lineno, place.function, call) if source and place and call else place
    return NanSource(node.name, at, call, operand, value if operand else "", tensor)


def _bad_value(
    name: str, saved: Mapping[str, torch.Tensor]
) -> tuple[str, str, torch.Tensor | None]:
    """The value that spoils the gradient, in which slot, and the saved tensor."""
    edges = [(slot, v) for slot, values in _EDGES.get(name, {}).items() for v in values]
    general = [(slot, v) for slot in _SLOTS for v in ("nan", "inf")]
    for slot, value in (*edges, *general):
        if slot in saved and _holds(saved[slot], value):
            return value, slot, saved[slot]
    return "", "", None


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
            return source, place, _operation(source, line, node.name)
    return None, None, None


def _frames(node: GraphNode) -> Iterator[tuple[str, int]]:
    """The frames of the forward stack, innermost first."""
    lines = node.node.metadata.get("traceback_", ())
    text = "".join(map(str, lines))
    yield from ((m[1], int(m[2])) for m in reversed(list(_FRAME.finditer(text))))


def _operation(source: Source, line: int, name: str) -> ast.expr | None:
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


def _operand(node: ast.expr, slot: str) -> str:
    if isinstance(node, ast.BinOp):
        return ast.unparse(node.right if slot in ("other", "exponent") else node.left)
    if isinstance(node, ast.Call):
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        of_torch = inner is None or ast.unparse(inner) in ("torch", "F", "np")
        given = [*([] if of_torch or inner is None else [inner]), *node.args]
        position = 1 if slot == "other" and len(given) > 1 else 0
        return ast.unparse(given[position]) if given else ""
    return ""
