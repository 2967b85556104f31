"""How the failing line reaches the old value: a state that is carried from round to round."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from types import FrameType

import torch

from autograd_explain.inspect.dataflow.reaching_definitions import head_of
from autograd_explain.inspect.dataflow.safe_lookup import in_frame
from autograd_explain.inspect.dataflow.syntax import attributes_in, names_in
from autograd_explain.inspect.facts.binding import Binding, binding_of
from autograd_explain.inspect.facts.failing_loops import given_by_round, inner_loop
from autograd_explain.inspect.facts.loop_carried import LoopCarried, StateKind, carried_by_loop
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.live.names import NamedTensor, holders, without_item
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Place
from autograd_explain.program import expression_of

from .filled_together import filled_beside, last_reading
from .freed_part import FreedPart, leading_to

_INDEX = re.compile(r"\[(?:\d+|'[^']*')\]")
_CONTAINERS = (list, tuple, torch.nn.ModuleList, torch.nn.Sequential)
_DICTS = (dict, torch.nn.ModuleDict)
_EACH = re.compile(rf"(.+){_INDEX.pattern}\.(\w+)")


@dataclass(frozen=True)
class Each:
    """Objects in a container, several of which carry tensors under these attributes; `all` says
    that every one does, `keyed` that they are the values of a dictionary."""

    container: str
    attributes: tuple[str, ...]
    all: bool
    keyed: bool


@dataclass(frozen=True)
class CarriedState:
    """`name` is how the failing line spells it, "" where it does not reach it.

    `others` are attributes of the same object that are carried with it, or lists that are filled
    with it; `last` is where the failing line's block reads these last, `loop` what a loop around
    the failing line carries where that does not reach the value itself, `each` the objects of a
    container that carry theirs.
    """

    name: str = ""
    kind: StateKind = StateKind.UNKNOWN
    others: tuple[str, ...] = ()
    loop: LoopCarried | None = None
    each: Each | None = None
    last: Place | None = None


def carried_state(
    scene: Scene, part: FreedPart, names: tuple[str, ...], library: LoopCarried | None
) -> CarriedState:
    """Which of the names of the old value the failing line reaches it by; `library` is what objects
    of packages hold."""
    if part.kept is not None and not part.kept.handed:
        return CarriedState()  # the failing line ran all of the rounds
    if library is not None and library.kind is StateKind.LIST:
        return CarriedState(loop=library)
    frame = scene.incident.user_frames[-1].frame
    appends = ["." + ast.unparse(call.func) for _, call in scene.index.calls("append")]
    # A name of the failing function's own says what a global one would say of one object only.
    names = tuple(sorted(names, key=lambda n: head_of(n) not in frame.f_locals))
    each_round = given_by_round(scene)  # `for loss in losses`: the next round gets another one
    names = tuple(n for n in names if not _is_one_of_many(n, names) and n not in each_round)
    each = _in_each(scene, part, frame)
    if each is not None and any(_leads_into(each, name, frame) for name in names):
        return CarriedState(each=each)
    for name in (n for full in names for n in holders(full)):
        value, holder = (in_frame(expression_of(n), frame) for n in (name, without_item(name)))
        if isinstance(holder, (list, tuple)) and name != without_item(name):
            continue  # one of many: cutting it alone is no repair; a tuple takes no new items
        if type(holder) is dict and len(holder) > 1 and name != without_item(name):
            loop = carried_by_loop(scene, part.old)
            if loop is not None and loop.kind is StateKind.DICT:
                return CarriedState(loop=loop)
        if isinstance(value, list) and _is_spoken_of(scene, head_of(name), frame):
            method = "." + name.rsplit(".", 1)[-1] + ".append"
            grows = any(called.endswith(method) for called in appends)
            if grows and _is_read_by_round(scene, head_of(name)):
                others = filled_beside(scene, name)
                last = last_reading(scene, (name, *others))
                return CarriedState(name, StateKind.LIST, others, last=last)
        if isinstance(value, torch.Tensor) and not value.is_leaf and _is_read(part, value):
            return CarriedState(name, StateKind.TENSOR, _with_it(scene, part, name, frame))
        if isinstance(value, tuple) and value and all(isinstance(v, torch.Tensor) for v in value):
            return CarriedState(name, StateKind.TUPLE)
    loop = None if each is not None else carried_by_loop(scene, part.old) or library
    return CarriedState(loop=loop, each=each)


def keeps_behind(scene: Scene, part: FreedPart) -> TraceEvent | None:
    """The moment that hands the old value on where its round does so behind the backward, into an
    attribute: `self.center = … + z.mean(0)`.  None where a later round reads the value itself."""
    maker, reader = part.maker, part.reader
    if maker is None or reader is None or part.first is None or part.first.order > reader.order:
        return None
    again = [m.order for m in part.newer if m.place.line_id == maker.place.line_id]
    if not again or min(again) <= reader.order:
        return None
    behind = (m for m in part.newer if reader.order <= m.order < min(again))
    return next((m for m in behind if _is_attribute(binding_of(scene.program, m))), None)


def _is_attribute(binding: Binding) -> bool:
    targets = getattr(binding.statement, "targets", ())
    return binding.inside is None and any(isinstance(t, ast.Attribute) for t in targets)


def _in_each(scene: Scene, part: FreedPart, frame: FrameType) -> Each | None:
    """The container of which several objects have old values as attributes: the layers of a
    network, those of a cache."""
    found: dict[str, dict[str, None]] = {}
    for named in leading_to(scene, part.old):
        match = _EACH.fullmatch(named.name)
        if match is not None:
            found.setdefault(match[1], {})[match[2]] = None
    for container in sorted(found, key=lambda name: head_of(name) not in frame.f_locals):
        value, attributes = in_frame(expression_of(container), frame), found[container]
        keyed = is_a(value, _DICTS)
        keys = map(repr, value) if keyed else range(len(value)) if is_a(value, _CONTAINERS) else ()  # type: ignore[arg-type]
        paths = [[f"{container}[{key}].{a}" for a in attributes] for key in keys]
        have = [[in_frame(expression_of(p), frame) for p in each] for each in paths]
        carry = [all(isinstance(v, torch.Tensor) for v in each) for each in have]
        if sum(carry) > 1:
            return Each(container, (*attributes,), all(carry), keyed)
    return None


def _leads_into(each: Each, name: str, frame: FrameType) -> bool:
    """Whether a name goes through the container, which may have other names in the frame: `self` is
    a global one's object there."""
    container = in_frame(expression_of(each.container), frame)
    paths = (name[: index.start()] for index in _INDEX.finditer(name))
    return any(in_frame(expression_of(path), frame) is container for path in paths)


def _is_read_by_round(scene: Scene, name: str) -> bool:
    """Whether the innermost loop around the failing line, where there is one, speaks of a name:
    else emptying what it holds comes too late for the rounds."""
    inner = inner_loop(scene)
    return inner is None or any(getattr(n, "id", "") == name for n in ast.walk(inner))


def _is_spoken_of(scene: Scene, name: str, frame: FrameType) -> bool:
    """Whether a name is the failing function's own, or a global one that its text reads."""
    if name in frame.f_locals:
        return True
    source, place = scene.program.source_at(scene.place), scene.place
    function = None if source is None or place is None else source.function_at(place)
    return function is not None and any(n.id == name for n in names_in(function))


def _is_one_of_many(name: str, names: tuple[str, ...]) -> bool:
    """`cache.layers[0].keys`, where the other layers keep theirs: cutting one is no repair."""
    alike = [n for n in names if _INDEX.sub("[]", n) == _INDEX.sub("[]", name)]
    return len(alike) > 1 and "]." in name


def _with_it(scene: Scene, part: FreedPart, name: str, frame: FrameType) -> tuple[str, ...]:
    """What else the object, or the failing function, keeps of the old part for the new one."""
    owner, dot, _ = name.rpartition(".")
    kept = [
        n
        for binding in part.shared
        for n in binding.names
        if dot or (_is_here(scene, binding) and _reads(binding, n))
    ]
    others = [owner + dot + n.rpartition(".")[2] for n in kept if ("." in n) == bool(dot)]
    leading = leading_to(scene, part.old) if dot else ()
    others += [n.name for n in leading if _is_beside(scene, n, owner)]
    found = ((n, in_frame(expression_of(n), frame)) for n in dict.fromkeys(others) if n != name)
    return tuple(n for n, v in found if isinstance(v, torch.Tensor) and not v.is_leaf)


def _is_beside(scene: Scene, named: NamedTensor, owner: str) -> bool:
    """Whether it is a tensor of the same object, which the program, or a library that the object is
    of, makes of what it was: `self.v` beside `self.k`."""
    head, _, attribute = named.name.rpartition(".")
    if head != owner or not attribute.isidentifier():
        return False
    made = [s for _, s in scene.index.assignments(f"self.{attribute}")]
    return not made or any(f"self.{attribute}" in attributes_in(s.value) for s in made)


def _is_here(scene: Scene, binding: Binding) -> bool:
    """Whether it stands in the function that failed: its names are that function's."""
    return scene.place is not None and scene.place.function_id == binding.place.function_id


def _reads(binding: Binding, name: str) -> bool:
    """Whether the statement that gives a name its value reads the one from before."""
    inside = () if binding.statement is None else ast.walk(binding.statement)
    names = (n for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return any(n.id == name for n in names)


def _is_read(part: FreedPart, value: torch.Tensor) -> bool:
    """Whether the next round gets the value under this name, and not out of a container."""
    return bool(part.carried) or part.carrier is None or value is part.carrier.tensor
