"""A view was made while gradients were off and is written while they are on."""

import ast
from dataclasses import dataclass

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.grad_mode import OffBy
from autograd_explain.inspect.facts import view_write
from autograd_explain.inspect.facts.view_write import ViewWrite
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Event, Finding, Place, label

from .refused_read import refused_read

PATTERNS = (
    "view-nograd-inplace",
    "view-nograd-base-modified",
    "view-of-view-nograd-inplace",
    "view-of-view-base-modified-nograd",
    "view-inference-inplace",
    "view-inference-base-modified",
    "view-of-view-inference-inplace",
)
#: Raised where such a view is read, not where something was written.
READ = tuple(pattern for pattern in PATTERNS if "-base-modified" in pattern)

EXAMPLE = {
    "tensor": "left",
    "maker": "frame[:, :middle]",
    "made": "In[1]:9",
    "off": "@torch.no_grad()",
    "off_place": "In[1]:6",
    "write": "left += shift",
    "place": "In[2]:4",
    "function": "halves",
    "base": "frame",
    "call": "",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    tensor: str
    base: str
    parameter: bool  #: the write updates one
    key: bool  #: the index could be kept instead of the view
    off: Place | None
    by: OffBy | None
    made: Place | None


def diagnose(scene: Scene) -> Finding[Details] | None:
    read = scene.match.pattern in READ
    found = refused_read(scene) if read else view_write.find(scene)
    if found is None:
        return None
    found, off = view_write.made_unrecorded(scene, found)
    off_place = None if off is None else scene.slicer.place_of(off.scope, off.node)
    culprit = view_write.fact(scene, found)
    place, parameter = scene.place, _writes_parameter(found) and not read
    name, base = next(iter(culprit.names), ""), _base_name(scene, found)
    return Finding(
        cause="view_made_under_no_grad",
        confidence=Confidence.PROVEN if off is not None else Confidence.LIKELY,
        facts={
            "tensor": name,
            "maker": "" if found.maker is None else found.maker.text,
            "made": "" if found.maker is None else label(scene.place_at(found.maker)),
            "off": "" if off_place is None else off_place.source,
            "off_place": "" if off_place is None else label(off_place),
            "write": "" if place is None else place.source,
            "place": label(place),
            "function": (off.scope.function or "") if off is not None else "",
            "base": base,
            "call": spot.text if read and (spot := scene.surfaced) is not None else "",
        },
        tensors=(culprit,),
        events=(
            *_written(scene, found),
            *view_write.created(scene, found),
            scene.failed(),
        ),
        variant="base" if read else "parameter" if parameter else "",
        details=Details(
            tensor=name,
            base=base,
            parameter=parameter,
            key=_can_be_key(scene, found),
            off=off_place,
            by=None if off is None else off.by,
            made=scene.place_at(found.maker),
        ),
    )


def _written(scene: Scene, found: ViewWrite) -> tuple[Event, ...]:
    """The refused write; where the view was read, a sound write came before and is not known."""
    return () if scene.match.pattern in READ else (view_write.changed(scene, found),)


def _base_name(scene: Scene, found: ViewWrite) -> str:
    """What the failing function calls the tensor that the view looks into."""
    base = None if found.tensor is None else found.tensor._base
    if base is None or found.written is None:
        return ""
    values = found.written.scope.values
    named = (n for n, v in values.items() if v is base and not n.startswith("_"))
    return next(named, "") or _attribute_name(scene, found, base)


def _attribute_name(scene: Scene, found: ViewWrite, base: torch.Tensor) -> str:
    """`self.flat` of the maker `self.flat[:, :3]`, where it is that tensor at the write as well."""
    node = None if found.maker is None else getattr(found.maker.node, "value", None)
    if not isinstance(node, ast.Attribute) or found.written is None:
        return ""
    return ast.unparse(node) if scene.slicer.value(found.written.inside(node)) is base else ""


def _can_be_key(scene: Scene, found: ViewWrite) -> bool:
    """One of several views made ahead (`[x[i] for i in …]`), whose index could be kept instead.

    Writing one such view leaves the others out of date: torch 2.13 then takes them for leaves.
    """
    maker = found.maker
    if maker is None or not isinstance(maker.node, ast.Subscript) or not _base_name(scene, found):
        return False
    around = scene.slicer.index(maker.scope.source).ancestors(maker.node)
    if not any(isinstance(a, (ast.ListComp, ast.For, ast.GeneratorExp)) for a in around):
        return False
    if found.written is not None and isinstance(found.written.node, ast.Subscript):
        return _only_written(scene, found.written)
    return all(_read_once(s) for s in maker.via[1:] if isinstance(s.node, ast.Name))


def _only_written(scene: Scene, written: ExprAt) -> bool:
    """Whether the program reads the container of the views only to fill it and in the writing
    function (`self.slots[name].copy_(x)`)."""
    assert isinstance(written.node, ast.Subscript)
    container = written.node.value
    if not isinstance(container, ast.Attribute):
        return False
    here = {id(n) for n in ast.walk(written.scope.body)}
    for source, node in scene.index.nodes(ast.Attribute):
        if node.attr == container.attr:
            around = source.parents.get(node)
            filled = isinstance(around, ast.Subscript) and isinstance(around.ctx, ast.Store)
            filled = filled and isinstance(scene.slicer.index(source).statement(node), ast.Assign)
            if isinstance(node.ctx, ast.Load) and not filled and id(node) not in here:
                return False
    return True


def _read_once(spot: ExprAt) -> bool:
    name = getattr(spot.node, "id", "")
    nodes = ast.walk(spot.scope.body)
    reads = [n for n in nodes if isinstance(n, ast.Name) and n.id == name]
    return sum(isinstance(n.ctx, ast.Load) for n in reads) == 1


def _writes_parameter(found: ViewWrite) -> bool:
    """The view looks into a leaf that requires grad: then the write is an update of it."""
    base = None if found.tensor is None else found.tensor._base
    return isinstance(base, torch.Tensor) and base.is_leaf and base.requires_grad
