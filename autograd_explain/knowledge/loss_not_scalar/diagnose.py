"""Backward was called on a tensor with several elements, or on a complex number."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.called_back import returned_to_library
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.torch_call import backward_roots, best_name, maker, tensor_fact
from autograd_explain.inspect.facts.value_names import stored_names
from autograd_explain.inspect.live.shapes import shown_shape
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Event, Finding, Place, Role, What

PATTERNS = ("scalar-output-only", "real-scalar-output-only")

EXAMPLE = {
    "place": "In[3]:3",
    "root": "loss",
    "shape": "[8]",
    "count": "8",
    "maker": 'nn.functional.cross_entropy(net(x), y, reduction="none")',
}


class ToNumber(Enum):
    """What makes one real number of the value; of mean and sum the one meant."""

    REAL = "real"
    MEAN = "mean"
    SUM = "sum"


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    to_number: ToNumber
    root: Place | None = None  #: what has to be a real number
    squared: tuple[Place, ...] = ()  #: the complex value in a square, each time it stands there


def diagnose(scene: Scene) -> Finding[Details] | None:
    index = next((i for i, t in enumerate(scene.roots) if _refused(t)), None)
    if index is None:
        return None
    tensor, shown = scene.roots[index], backward_roots(scene)
    returned = None if shown else returned_to_library(scene)
    root = shown[index] if index < len(shown) else returned
    made = maker(scene, root)
    fact = tensor_fact(scene, tensor, "" if root is None else root.text, role=Role.CULPRIT)
    complex_number = tensor.is_complex() and tensor.numel() == 1
    at = root if returned is None else made or root
    squares = [*_squares(scene, made)] if complex_number and made is not None else []
    return finding_from_message(
        scene,
        "loss_not_scalar",
        EXAMPLE,
        facts={
            "root": root.text if root is not None else best_name(fact),
            "shape": shown_shape(tensor),
            "count": str(tensor.numel()),
            "maker": "" if made is None else made.text,
        },
        at=squares[0] if squares else at,
        variant="complex" if complex_number else "",
        confidence=Confidence.PROVEN,
        tensors=(fact,),
        more=() if made is None else (_created(scene, made),),
    ).with_details(
        Details(
            ToNumber.REAL if complex_number else _meant(scene, root, made),
            scene.place_at(at),
            tuple(map(scene.slicer.place, squares)),
        )
    )


def _refused(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and (tensor.numel() != 1 or tensor.is_complex())


def _created(scene: Scene, made: ExprAt) -> Event:
    return scene.event_at(What.CREATED, made)


def _squares(scene: Scene, made: ExprAt) -> Iterator[ExprAt]:
    """`z` of each `z ** 2`, `z.square()` or `z * z` behind a complex value, not of a real `z`; both
    where it stands there twice."""
    slicer, pending, seen = scene.slicer, [made], set[int]()
    while pending and len(seen) < _MANY:
        spot = pending.pop(0)
        if id(spot.node) in seen:
            continue
        seen.add(id(spot.node))
        found = _squared(spot)
        if any(m.called in _REAL for z in found for m in slicer.makers(z)):
            continue
        if any(v is not None and not v.is_complex() for v in map(slicer.tensor, found)):
            continue
        yield from found
        if not found:
            pending += [m for o in slicer.operands(spot) for m in slicer.makers(o)]


_MANY = 50
#: What makes real numbers of complex ones.
_REAL = ("abs", "absolute", "norm", "vector_norm", "angle", "real", "imag")


def _squared(spot: ExprAt) -> list[ExprAt]:
    node = spot.node
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow) and _is_two(node.right):
            return [spot.inside(node.left)]
        same = isinstance(node.op, ast.Mult) and ast.dump(node.left) == ast.dump(node.right)
        return [spot.inside(node.left), spot.inside(node.right)] if same else []
    if not isinstance(node, ast.Call) or spot.called not in ("square", "pow"):
        return []
    given = [*node.args]
    if spot.called == "pow" and not (given and _is_two(given.pop())):
        return []
    value = spot.inside(given[0]) if given else spot.receiver  # torch.square(z) or z.square()
    return [] if value is None else [value]


def _is_two(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 2


def _meant(scene: Scene, root: ExprAt | None, made: ExprAt | None) -> ToNumber:
    """`mean` or `sum`: how the program itself reduces this value elsewhere; a loss per sample is
    averaged, as torch's losses do, and other values are added up."""
    names = {
        "" if root is None else root.text,
        *(() if made is None else stored_names(scene, made)),
    }
    for _, node in scene.index.nodes(ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("mean", "sum"):
            if ast.unparse(node.func.value) in names and not node.args and not node.keywords:
                return ToNumber(node.func.attr)
    text = " ".join((*names, "" if made is None else made.text)).lower()
    return ToNumber.MEAN if any(word in text for word in _LOSSES) else ToNumber.SUM


_LOSSES = ("loss", "reduction", "error", "criterion", "cost", "objective", "entropy", "penalty")
