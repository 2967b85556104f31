"""`requires_grad` was set after the values had been read."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.expressions import attribute_read
from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.late_flag import LateFlag, flags_beside, late_flag
from autograd_explain.inspect.facts.torch_call import (
    backward_roots,
    before,
    calls_in,
    differentiated,
    elements,
    failing_call,
    gone_back_from,
    live_value,
    tensor_fact,
)
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, Place, What, label

PATTERNS = (
    "unused-input",
    "no-grad-fn",
    "grad-none-attribute",
    "grad-none-arithmetic",
    "grad-none-first",
    "grad-none-unary",
)

EXAMPLE = {
    "tensor": "x",
    "source": "x",
    "root": "u.sum()",
    "flag": "x.requires_grad_()",
    "place": "In[1]:6",
    "use": "torch.stack([torch.sin(k * x) for k in range(1, 4)], dim=1)",
    "use_place": "In[1]:5",
}


@dataclass(frozen=True)
class Late:
    """A flag, and what is to know of it."""

    flag: Place
    use: Place  #: before which the flag has to be set
    tensor: str = ""
    source: str = ""  #: what it has the values of
    #: what that is called in callers and the statements that read it there, where the flag stands
    #: in a called function
    callers: tuple[tuple[str, Place], ...] = ()
    again: tuple[Place, ...] = ()  #: the statements of that function that copy it before
    kept: bool = False  #: the flag stands in a function that others may call
    anew: str = ""  #: what computes the early values from the flagged tensor
    reader: Place | None = None  #: the statement that reads them behind the flag
    apart: bool = False  #: they were computed elsewhere, or once for all rounds
    reads: tuple[Place, ...] = ()  #: of the source, in `use`

    @property
    def places(self) -> tuple[Place, ...]:
        return self.flag, self.use, *(place for _, place in self.callers), *self.again, *self.reads

    def moved(self, *places: Place) -> "Late":
        """With these for its places."""
        (flag, use), rest, calls = places[:2], places[2:], len(self.callers)
        given = (name for name, _ in self.callers)
        callers = tuple(zip(given, rest[:calls], strict=True))
        again, reads = rest[calls:][: len(self.again)], rest[calls + len(self.again) :]
        return replace(self, flag=flag, use=use, callers=callers, again=again, reads=reads)


@dataclass(frozen=True)
class Details:
    """What the rewrites go by: the flag that is told, and others of its function."""

    flags: tuple[Late, ...]

    @property
    def told(self) -> Late:
        return self.flags[0]


def diagnose(scene: Scene) -> Finding[Details] | None:
    for roots, tensor in _asked(scene):
        late = late_flag(scene, roots, tensor)
        if late is not None:
            return _finding(scene, late)
    return None


def _asked(scene: Scene) -> Iterator[tuple[list[ExprAt], ExprAt | None]]:
    """What a gradient is taken of, and of which tensor it is asked where one is named."""
    if scene.match.pattern.startswith("grad-none"):
        yield from _of_read(scene)
        return
    call = failing_call(scene, "grad", "backward")
    given = None if call is None else call.argument(1, "inputs")
    listed = [] if given is None or not differentiated(scene) else elements(scene, given)
    index = scene.match.captures.get("index", "")
    listed = listed[int(index) : int(index) + 1] if index.isdigit() else listed
    for asked in (*listed, *(() if listed else (None,))):
        yield backward_roots(scene), asked


def _of_read(scene: Scene) -> Iterator[tuple[list[ExprAt], ExprAt]]:
    """The loss of the backward before `x.grad` was read, and x."""
    shown = attribute_read(scene, "grad")
    tensor: Any = live_value(scene, shown)
    if shown is None or (isinstance(tensor, torch.Tensor) and not _is_missing(tensor)):
        return  # of an object that hands out its fields itself no tensor is known
    for call in calls_in(scene, "backward"):
        root = gone_back_from(scene, call)
        if root is not None and before(scene, call, shown):
            yield [root], shown


def _is_missing(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and tensor.grad is None


def _finding(scene: Scene, late: LateFlag) -> Finding[Details]:
    tensor = scene.slicer.value(scene.slicer.imagined(late.root, late.tensor))
    use, flag = scene.place_at(late.use), scene.place_at(late.flag)
    known = not scene.match.pattern.startswith("grad-none") or isinstance(tensor, torch.Tensor)
    found = (_late(scene, f) for f in (late, *flags_beside(scene, late)))
    return finding_from_message(
        scene,
        "flag_set_late",
        EXAMPLE,
        facts={
            "tensor": late.name,
            "root": late.root.text,
            "flag": "" if flag is None else flag.source,
            "source": late.source,
            "use": late.use.text,
            "use_place": label(use),
        },
        at=late.flag,
        variant="" if late.source == late.name else "copy",
        confidence=Confidence.PROVEN if known else Confidence.LIKELY,
        tensors=(tensor_fact(scene, tensor, late.name, *(u.given for u in late.callers[:1])),),
        more=(scene.event_at(What.CREATED, late.use),),
    ).with_details(Details(tuple(flag for flag in found if flag is not None)))


def _late(scene: Scene, late: LateFlag) -> Late | None:
    flag, use = scene.place_at(late.flag), scene.place_at(late.use)
    if flag is None or use is None:
        return None
    nodes = (n for n in ast.walk(late.use.node) if isinstance(n, ast.expr))
    return Late(
        flag,
        use,
        tensor=late.name,
        source=late.source,
        callers=tuple((use.given, use.ahead) for use in late.callers),
        again=scene.places_at(late.again),
        kept=late.kept,
        anew=late.anew,
        reader=scene.place_at(late.reader),
        apart=late.apart,
        reads=scene.places_at(late.use.inside(n) for n in nodes if ast.unparse(n) == late.source),
    )
