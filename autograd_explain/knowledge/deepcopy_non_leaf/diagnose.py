"""`copy.deepcopy` met a tensor that is the result of an operation."""

import ast
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.cut_kinds import cut_of, is_about_shape
from autograd_explain.inspect.dataflow.grad_mode import switched_off_around
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.dataflow.syntax import attributes_in
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.statements import writes_in
from autograd_explain.inspect.facts.torch_call import (
    failing_call,
    live_value,
    local,
    tensor_fact,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Event, Finding, Place, What, label
from autograd_explain.program import Source, called_name

from .copied_path import copied_path
from .old_norm import OldNorm, old_norm
from .unrecorded import untrained_makers

PATTERNS = ("deepcopy-nonleaf",)

EXAMPLE = {
    "place": "In[1]:17",
    "tensor": "net.last",
    "copied": "net",
    "module": "Encoder",
    "attribute": "last",
    "maker": "hidden",
    "node": "TanhBackward0",
    "function": "",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    copied: Place | None
    copied_text: str
    direct: bool  #: the tensor itself is copied
    stored: bool  #: in an attribute, by one of the program's statements
    looks_back: bool  #: the stored value is only looked at: its graph is kept for nothing
    reads: tuple[Place, ...]  #: where the pass that stores it goes on with it
    norm: str  #: the old function of torch.nn.utils that stores it and can be replaced
    asked: tuple[Place, ...]  #: for that function
    makers: tuple[Place, ...] = ()  #: the statements that made it, where no gradient is wanted
    attribute: str = ""  #: the name that the stored value has in its object
    whole: str = ""  #: the module of which several parts keep such a tensor under that attribute
    running: bool = False  #: a statistic: each round makes it of the one before, or it is a buffer
    written: Place | None = None  #: what writes such a buffer in place


def diagnose(scene: Scene) -> Finding[Details] | None:
    tensor: Any = local(scene, "__deepcopy__", "self", "torch/_tensor.py")
    if not isinstance(tensor, torch.Tensor) or tensor.is_leaf:
        return None
    call = failing_call(scene, "deepcopy")
    copied = call and call.argument(0, "x")
    root = live_value(scene, copied)
    owner, attribute = _holder(root, tensor)
    if owner is MISSING:
        owner, attribute = _holder(local(scene, "_reconstruct", "x", "copy.py"), tensor)
    norm = old_norm(scene, owner, attribute, root)
    apart = norm is None and root is not tensor
    stores = [] if owner is MISSING else scene.slicer.stores(owner, attribute)
    stores = _by_maker(scene, [s for s in stores if not _nothing(s.node)], tensor)
    stored = sorted(stores, key=lambda s: not _is_of_itself(s, attribute))
    buffer = isinstance(owner, torch.nn.Module) and attribute in owner._buffers
    written = _written(scene, owner, attribute) if buffer and not stored else None
    fact = tensor_fact(scene, tensor)
    path = "" if fact.names or copied is None else copied_path(scene, copied.text)
    fact = replace(fact, names=(path,)) if path else fact
    alone = owner is not MISSING and _attributes(owner).get(attribute) is tensor
    own, later = _reads(scene, attribute, stored if alone else []) if apart else ([], [])
    names = fact.names or ((copied.text,) if copied is not None and root is tensor else ())
    causes = norm.asked if norm is not None else (stored[:1] or (written or copied,))
    return finding_from_message(
        scene,
        "deepcopy_non_leaf",
        EXAMPLE,
        facts={
            "tensor": names[0] if names else attribute,
            "copied": "" if copied is None else copied.text,
            "module": "" if owner is MISSING else type(owner).__name__,
            "attribute": attribute,
            "maker": stored[0].text if stored else "",
            "node": fact.grad_fn or "",
            "function": "" if norm is None else norm.function,
            "place": label(scene.place_at(causes[0])),
        },
        at=causes[0],
        more=_further(scene, causes[1:]),
        variant=_variant(norm, stored, root is tensor),
        confidence=Confidence.PROVEN,
        tensors=(fact,),
    ).with_details(
        Details(
            copied=scene.place_at(copied),
            copied_text="" if copied is None else copied.text,
            direct=norm is None and root is tensor,
            stored=apart and bool(stored),
            looks_back=apart and len(stored) == 1 and all(_only_looks(scene, r) for r in later),
            reads=scene.places_at(r for r in own if not _only_looks(scene, r)),
            norm=norm.function if norm is not None and norm.replaceable else "",
            asked=() if norm is None else scene.places_at(norm.asked),
            makers=()
            if norm is not None or copied is None or _computes_anew(root)
            else untrained_makers(scene, copied, tensor),
            attribute=attribute,
            running=bool(stored) and _is_running(stored, attribute, buffer),
            written=scene.place_at(written),
            whole=_whole(scene, root, "" if copied is None else copied.text, names, attribute),
        )
    )


def _whole(scene: Scene, root: Any, text: str, names: Sequence[str], attribute: str) -> str:
    if not text and names:  # a library copies
        text = next(iter(re.split(r"[.\[]", names[0])))
        root = scene.incident.namespace.get(text)
    modules = root.modules() if text and isinstance(root, torch.nn.Module) else ()
    kept = [v for m in modules if isinstance(v := _attributes(m).get(attribute), torch.Tensor)]
    return text if sum(not v.is_leaf for v in kept) > 1 else ""


def _computes_anew(root: Any) -> bool:
    """Whether what is copied is the result itself, or a module, which stores it in every forward
    pass, those of a training that is yet to come too."""
    return isinstance(root, (torch.Tensor, torch.nn.Module))


def _by_maker(scene: Scene, stored: list[ExprAt], tensor: torch.Tensor) -> list[ExprAt]:
    """Statements that store, those first through which the tensor was made."""
    made = scene.history.creation(tensor) if len(stored) > 1 else None
    lines = set() if made is None else {place.line_id for place in made.path}
    return sorted(stored, key=lambda s: scene.slicer.place(s).line_id not in lines)


def _is_of_itself(spot: ExprAt, attribute: str) -> bool:
    return isinstance(spot.node, ast.expr) and f"self.{attribute}" in attributes_in(spot.node)


def _is_running(stored: list[ExprAt], attribute: str, buffer: bool) -> bool:
    """Whether what is stored is a statistic: the first of the statements makes it of the one
    before, or it is the only one of a buffer, which nothing trains."""
    first, *others = stored
    alone = buffer and not others and first.function != "__init__"
    return alone or _is_of_itself(first, attribute)


def _written(scene: Scene, owner: Any, attribute: str) -> ExprAt | None:
    """The one call in the owner's class that writes a buffer in place."""
    found = [
        scene.slicer.at(source, write.statement.value)
        for source, write in writes_in(scene.index)
        if write.target_text == f"self.{attribute}" and isinstance(write.statement, ast.Expr)
    ]
    around = ((s, scene.slicer.index(s.scope.source).class_of(s.scope.body)) for s in found)
    own = [s for s, cls in around if cls is not None and scene.index.is_class(type(owner), cls)]
    return own[0] if len(own) == 1 else None


def _variant(norm: OldNorm | None, stored: list[ExprAt], direct: bool) -> str:
    if norm is not None:
        return "norm"
    if stored:
        return ""
    return "tensor" if direct else "container"


def _further(scene: Scene, spots: Sequence[ExprAt | None]) -> list[Event]:
    return [scene.event_at(What.CAUSE, s) for s in spots if s is not None]


def _holder(root: Any, tensor: torch.Tensor) -> tuple[Any, str]:
    """The module (or plain object) whose own attribute is the tensor, and the attribute."""
    if isinstance(root, torch.nn.Module):
        owners: list[Any] = list(root.modules())
    else:
        owners = [root] if hasattr(root, "__dict__") and not isinstance(root, torch.Tensor) else []
    for holds in (operator.is_, _contains):
        for owner in owners:
            for name, value in _attributes(owner).items():
                if holds(value, tensor):
                    return owner, name
    return MISSING, ""


def _attributes(owner: Any) -> dict[str, Any]:
    """What an object holds by name; a buffer that is given a new value stays one."""
    buffers = owner._buffers if isinstance(owner, torch.nn.Module) else {}
    return {**buffers, **vars(owner)}


def _contains(value: Any, tensor: torch.Tensor) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, (list, tuple)) and any(v is tensor for v in value)


def _nothing(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) or (
        isinstance(node, (ast.List, ast.Dict))
        and not (getattr(node, "elts", None) or getattr(node, "keys", None))
    )


def _reads(scene: Scene, attribute: str, stored: list[ExprAt]) -> tuple[list[ExprAt], list[ExprAt]]:
    """What reads the attribute: in the pass that has stored it before, `self.last = f(x)` in the
    function's own body, and elsewhere."""
    reads = [scene.slicer.at(*read) for read in scene.index.reads(attribute)]
    first = stored[0] if len(stored) == 1 else None
    statement = None if first is None else scene.slicer.statement(first)
    body = getattr(None if first is None else first.scope.body, "body", None)
    if first is None or not isinstance(statement, ast.Assign) or statement not in (body or ()):
        return [], reads
    kept, line = [ast.unparse(t) for t in statement.targets], statement.end_lineno or 0
    own = [r for r in reads if r.scope.body is first.scope.body and r.node.lineno > line]
    own = own if [r.text for r in own] == kept * len(own) else []
    return own, [r for r in reads if all(r is not o for o in own)]


def _only_looks(scene: Scene, read: ExprAt) -> bool:
    """Whether the expression around a read takes numbers alone of it, or nothing is recorded."""
    source = read.scope.source
    for outer in source.around(read.node):
        trains = isinstance(outer, ast.Call) and _may_train(scene, source, outer)
        if trains or not isinstance(outer, ast.expr):
            break
        if is_about_shape(outer) or cut_of(scene.slicer, scene.slicer.at(source, outer)):
            return True
    return switched_off_around(scene.slicer, read) is not None


def _may_train(scene: Scene, source: Source, call: ast.Call) -> bool:
    """Whether a call goes backward, or a function of the program's may."""
    return called_name(call) == "backward" or scene.index.called(source, call) is not None
