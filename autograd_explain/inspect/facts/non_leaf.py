"""A tensor that is no leaf although the user takes it for one, or wants its gradient.

The live graph tells whether one leaf stands behind it, the source which expression came between.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from ...isolation.type_checks import is_a
from ...model import Event, Place, Relation, Role, TensorFact, What
from ...program import called_name
from ..dataflow import ExprAt
from ..dataflow.cut_kinds import makes_leaf
from ..dataflow.grad_mode import switched_off_around
from ..dataflow.reaching_definitions import Each
from ..dataflow.syntax import FACTORIES
from ..scene import Scene
from .expressions import computation
from .replaced_leaf import ReplacedLeaf, replaced_leaf
from .value_names import stored_names

_LONGEST_CHAIN = 12


class Between(str, Enum):
    """What the expression between the leaf and the tensor does; names of text variants."""

    CAST = "cast"
    DEVICE = "device"
    COPY = "copy"
    SHAPE = "shape"
    ARITHMETIC = "arithmetic"


@dataclass(frozen=True, eq=False)
class NonLeaf:
    """`maker` is the user's expression that computed the tensor, None where it is not known.

    `leaf` is the only leaf behind it, reached through few one-input nodes; None where the tensor
    depends on several. `leaf_names` are the leaf's live names, () for one that nothing names.
    `replaced` where the program updates a leaf by giving its name this new tensor.  `computed` is
    the call that made it where `maker` only reads it of what a package's call gave.
    """

    tensor: torch.Tensor
    shown: ExprAt | None
    maker: ExprAt | None
    leaf: torch.Tensor | None
    leaf_names: tuple[str, ...]
    between: Between | None
    stored: tuple[str, ...] = ()
    replaced: ReplacedLeaf | None = None
    computed: ExprAt | None = None

    @property
    def lost_leaf(self) -> bool:
        """The one leaf behind it has no name, and the user takes this tensor for it."""
        if self.replaced is not None:
            return True
        if self.leaf is None or self.leaf_names:
            return False
        return self.between is not Between.ARITHMETIC or self._hides_leaf

    @property
    def renamed_leaf(self) -> bool:
        """It holds the values of a leaf that the user can still name (a cast, a copy, a view)."""
        if self.replaced is not None:
            return False
        return self.leaf is not None and bool(self.leaf_names) and self.between in _SAME_VALUES

    @property
    def _hides_leaf(self) -> bool:
        """`torch.randn(3, requires_grad=True) * 0.1`, or `x = x * 0.1`: the leaf's only name is
        gone."""
        if self.maker is None:
            return False
        if any(makes_leaf(n) for n in ast.walk(self.maker.node)):
            return True
        read = {ast.unparse(n) for n in ast.walk(self.maker.node) if isinstance(n, ast.Name)}
        return bool(read.intersection(self.stored))


_SAME_VALUES = (Between.CAST, Between.DEVICE, Between.COPY, Between.SHAPE)


def analyse(scene: Scene, tensor: torch.Tensor, shown: ExprAt | None) -> NonLeaf:
    """What made `tensor`, which the user wrote as `shown`, a non-leaf."""
    maker = _maker(scene, tensor, shown)
    if maker is not None and maker.called in FACTORIES and not makes_leaf(maker.node):
        maker = None  # such a tensor has no graph: a later write gave it one
    leaf = only_leaf(tensor)
    names = tuple(n.name for n in scene.names.tensors if n.tensor is leaf)
    between = None if leaf is None else _between(tensor, leaf)
    stored = () if maker is None else stored_names(scene, maker)
    replaced = None if maker is None or shown is None else replaced_leaf(scene, maker, shown)
    read = maker or shown
    node = "" if tensor.grad_fn is None else tensor.grad_fn.name()
    computed = (None if read is None else left_by(scene, read, node)) or maker
    return NonLeaf(tensor, shown, maker, leaf, names, between, stored, replaced, computed)


def events(scene: Scene, found: NonLeaf, op: str | None) -> tuple[Event, ...]:
    """The statement that made the tensor, and the one that named what a function returned."""
    if found.computed is None:
        return ()
    cause = scene.event_at(What.CAUSE, found.computed, op)
    if found.maker is None:
        return (cause,)
    named = [] if found.stored else [_named(scene, s) for s in reversed(found.maker.via)]
    leaf = None if found.leaf_names else _leaf_maker(scene, found.maker)
    made = [] if leaf is None else [scene.event_at(What.CREATED, leaf, relation=Relation.LEAF)]
    return (cause, *made, *(e for e in named if e is not None))


def _leaf_maker(scene: Scene, maker: ExprAt) -> ExprAt | None:
    """The one constructor behind an expression, where nothing else reads the leaf it makes."""
    spots = list(computation(scene, maker))
    leaves = [s for s in spots if makes_leaf(s.node)]
    if len(leaves) != 1 or leaves[0].node is maker.node:
        return None
    slicer = scene.slicer
    used = {id(slicer.statement(s)) for s in (maker, *spots)}
    for name in stored_names(scene, leaves[0]):
        for node in ast.walk(leaves[0].scope.body):
            if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == name:
                if id(slicer.index(leaves[0].scope.source).statement(node)) not in used:
                    return None
    return leaves[0]


def _named(scene: Scene, spot: ExprAt) -> Event | None:
    slicer = scene.slicer
    for scope, binding in slicer.bindings(spot, spot.text):
        if isinstance(binding.statement, ast.Assign) and not binding.path:
            place = slicer.place_of(scope, binding.statement)
            return Event(What.CREATED, place, relation=Relation.NAMED)
    return None


def fact(scene: Scene, found: NonLeaf, role: Role = Role.CULPRIT) -> TensorFact:
    """The tensor for the report: live names, then as the statements call it."""
    shown = () if found.shown is None else (found.shown.text,)
    return scene.fact(role, found.tensor, *shown, *found.stored)


def _maker(scene: Scene, tensor: torch.Tensor, shown: ExprAt | None) -> ExprAt | None:
    if shown is None:
        return None
    makers = [m for m in scene.slicer.makers(shown) if not m.spelled]
    computing = [m for m in makers if _computes(m) and not _unrecorded(scene, m)]
    name = "" if tensor.grad_fn is None else tensor.grad_fn.name()
    fitting = [m for m in computing if fits_node(m.node, name)]
    if len(fitting) == 1:
        return fitting[0]
    # A hook's argument was made by torch; then what stores it is all the source shows.
    stored = [m for m in makers if isinstance(m.node, ast.Name) and m.function is not None]
    only = [*computing, *stored]
    if len(only) == 1 and len(makers) == 1:
        return only[0]
    branches = [m for m in computing if stored_names(scene, m)]
    made = scene.history.creation(tensor) if len(branches) > 1 else None
    seen = () if made is None else (m for m in branches if _is_at(scene, m, made.place))
    return next(iter((*seen, *fitting)), None)


def _is_at(scene: Scene, spot: ExprAt, place: Place) -> bool:
    return scene.slicer.place(spot).line_id == place.line_id


def left_by(scene: Scene, read: ExprAt, node: str) -> ExprAt | None:
    """`model(x)` of `out.maps`, where a package's call left what is read, and the loader that gave
    `batch` of `batch.x` for each round.  `node` may have been made by the reading."""
    spot = read
    while isinstance(spot.node, _READS) and not fits_node(spot.node, node):
        owner = spot.inside(spot.node.value)
        if is_a(scene.slicer.value(owner), (torch.Tensor, torch.nn.Module)):
            return None
        made = scene.slicer.makers(owner)
        if len(made) != 1 or made[0].node is owner.node:
            return None
        spot = made[0]
    if spot is read or not isinstance(spot.node, ast.Call):
        return None
    looped = bool(spot.path) and spot.path[0] is Each.ITEM and bool(spot.via)
    around = spot.scope.source.parents.get(spot.node)
    return spot.via[-1] if looped and getattr(around, "iter", None) is not spot.node else spot


_READS = (ast.Attribute, ast.Subscript)


def _unrecorded(scene: Scene, maker: ExprAt) -> bool:
    """An operation under no_grad (`w -= lr * w.grad`) leaves no node: the graph is not its work."""
    return switched_off_around(scene.slicer, maker) is not None


def _computes(maker: ExprAt) -> bool:
    return isinstance(maker.node, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.AugAssign,
                                   ast.Attribute))  # fmt: skip


_OPERATORS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Add: ("Add",),
    ast.Sub: ("Sub", "Rsub"),
    ast.Mult: ("Mul",),
    ast.Div: ("Div", "Mul", "Reciprocal"),
    ast.Pow: ("Pow",),
    ast.MatMult: ("Mm", "Mv", "Dot", "Bmm", "Matmul", "UnsafeView", "Squeeze"),
    ast.USub: ("Neg",),
    ast.Mod: ("Remainder",),
}
_METHODS: dict[str, tuple[str, ...]] = {
    "ToCopy": (
        "float",
        "double",
        "half",
        "bfloat16",
        "to",
        "type",
        "cuda",
        "cpu",
        "type_as",
        "mps",
    ),
    "Clone": ("clone", "contiguous"),
    "View": ("view", "reshape", "flatten", "unflatten", "view_as"),
    "UnsafeView": ("view", "reshape", "matmul", "linear"),
    "Transpose": ("t", "transpose", "swapaxes"),
    "T": ("t",),
    "Addmm": ("linear",),
    "Convolution": ("conv1d", "conv2d", "conv3d"),
    "NativeBatchNorm": ("batch_norm",),
}


def fits_node(node: ast.AST, name: str) -> bool:
    """Whether an expression may have made a graph node of this name (`MulBackward0`)."""
    stem = name.split("Backward")[0]
    operator = getattr(node, "op", None)
    if operator is not None:
        return stem in _OPERATORS.get(type(operator), ())
    if isinstance(node, ast.Subscript):
        return stem in ("Select", "Slice", "Index", "Squeeze", "Unsqueeze", "AsStrided", "Unbind")
    if isinstance(node, ast.Attribute):
        return node.attr in ("T", "mT", "H", "real", "imag")
    attr = called_name(node)
    plain = attr.replace("_", "").lower()
    if attr in _METHODS.get(stem, ()):
        return True
    return bool(plain) and (stem.lower().startswith(plain) or plain.startswith(stem.lower() or "-"))


def only_leaf(tensor: torch.Tensor) -> torch.Tensor | None:
    """The leaf at the end of a short chain of nodes that each have one input, else None."""
    node: Any = tensor.grad_fn
    for _ in range(_LONGEST_CHAIN):
        if node is None:
            return None
        variable = getattr(node, "variable", None)
        if isinstance(variable, torch.Tensor):
            return variable
        following = [fn for fn, _ in node.next_functions if fn is not None]
        if len({id(f) for f in following}) != 1:
            return None
        node = following[0]
    return None


def _between(tensor: torch.Tensor, leaf: torch.Tensor) -> Between:
    nodes = list(_chain(tensor))
    if all(n in ("Clone", "ToCopy") or n in _SHAPES for n in nodes):
        if tensor.device != leaf.device:
            return Between.DEVICE
        if tensor.dtype != leaf.dtype:
            return Between.CAST
        return Between.COPY if "Clone" in nodes or "ToCopy" in nodes else Between.SHAPE
    return Between.ARITHMETIC


_SHAPES = frozenset({
    "View", "Reshape", "ReshapeAlias", "UnsafeView", "Transpose", "T", "Permute", "Squeeze",
    "Unsqueeze", "Expand", "AsStrided", "Unflatten", "Alias",
})  # fmt: skip


def _chain(tensor: torch.Tensor) -> Iterator[str]:
    node: Any = tensor.grad_fn
    for _ in range(_LONGEST_CHAIN):
        if node is None or hasattr(node, "variable"):
            return
        yield node.name().split("Backward")[0]
        node = next((fn for fn, _ in node.next_functions if fn is not None), None)
