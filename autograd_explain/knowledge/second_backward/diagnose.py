"""A second backward went into a part of the graph that the first one freed."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch

from autograd_explain.incident import LiveFrame
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.reaching_definitions import head_of
from autograd_explain.inspect.facts.assigned_names import assigned_names, bound_place
from autograd_explain.inspect.facts.call_levels import (
    at_one_level,
    distinct,
    failing_path,
    path_of,
    paths_of,
)
from autograd_explain.inspect.facts.freed_part import (
    FreedPart,
    backward_calls,
    came_before_loop,
    failing_loops,
    find_freed_part,
    inside_failing_loop,
)
from autograd_explain.inspect.facts.overwrite import label
from autograd_explain.inspect.facts.retained_values import stored
from autograd_explain.inspect.facts.statements import resolve, statement_at
from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import (
    Certainty,
    Confidence,
    Event,
    Finding,
    Place,
    Role,
    TensorFact,
    What,
)
from autograd_explain.program import called_name

from .memoization import Memoized, remembered
from .saved_read import saved_read
from .step_effect import Step, steps_after
from .uses import uses_for, value_call

PATTERNS = ("backward-twice",)

EXAMPLE = {
    "tensor": "hidden",
    "maker": "hidden = cell(x, hidden)",
    "maker_place": "In[2]:2",
    "first": "loss.backward()",
    "first_place": "In[2]:4",
    "failed": "loss.backward()",
    "failed_place": "In[2]:4",
    "step": "",
    "step_place": "?",
    "state": "hidden",
    "state_kind": "tensor",
    "memory": "",
    "memory_place": "?",
    "before_loop": "",
    "loss_place": "",
}


class Why(Enum):
    """How it came to the second backward; also the variant of the texts."""

    REMEMBERED = "remembered"  #: a function hands out again what its first call computed
    CARRIED = "carried"  #: a state from round to round
    SAME_LOSS = "same_loss"
    SHARED = "shared"
    SHARED_APART = "shared_apart"  #: and what steps in between does not write to it
    SHARED_STEPPED = "shared_stepped"  #: and a step in between spoils it
    COMPUTED_ONCE = "computed_once"
    CLOSURE = "closure"
    CELL_AGAIN = "cell_again"
    SAVED_READ = "saved_read"


class StateKind(Enum):
    """What the carried state is."""

    TENSOR = "tensor"
    TUPLE = "tuple"
    LIST = "list"
    UNKNOWN = ""


@dataclass(frozen=True)
class Details:
    """What the rewrites go by; () and None where it is not known."""

    why: Why
    tensor: str = ""
    state: str = ""  #: the name under which the failing line reaches it
    state_kind: StateKind = StateKind.UNKNOWN
    stepped: bool = False  #: an optimizer stepped in between
    kept: tuple[Place, ...] = ()  #: the statement that keeps the old value, and its callers
    use: Place | None = None  #: where the new part begins, at the level of the failing line
    old: tuple[Place, ...] = ()  #: the statements that computed the old part, at that level
    reader: Place | None = None  #: the only line at which the new part reads the old value
    made: tuple[Place, ...] = ()  #: in a constructor
    attribute_uses: tuple[Place, ...] = ()  #: of what was made there
    stored: Place | None = None  #: what puts it into a mere memory of earlier rounds
    first_uses: tuple[Place, ...] = ()  #: where the earlier loss reads the shared part
    inputs: tuple[Place, ...] = ()  #: names with a graph, handed to what made the old value


def diagnose(scene: Scene) -> Finding[Details] | None:
    part = find_freed_part(scene)
    if part is None:
        found = saved_read(scene, EXAMPLE)
        return None if found is None else found.with_details(Details(Why.SAVED_READ))
    calls = backward_calls(scene)
    first = calls[-1] if calls else None
    steps = steps_after(scene, part, first)
    memory = _memory(scene, part)
    why = Why.REMEMBERED if memory is not None else _why(scene, part, first, steps)
    step = next((s for s in steps if s.writes is not False), None) or next(iter(steps), None)
    storing = _storing(scene, part) if why in (Why.CARRIED, Why.COMPUTED_ONCE) else None
    bound = storing or _bound(scene, part)
    fact = _culprit(scene, part, memory)
    state, state_kind = _carried_state(scene, part, fact.names)
    place = scene.place
    first_place = first.place if first is not None else place
    cause = memory.place if memory is not None else bound
    return Finding(
        cause="second_backward",
        confidence=Confidence.PROVEN,
        facts={
            "tensor": fact.names[0] if fact.names else part.boundary.name,
            "maker": bound.source if bound else part.boundary.name,
            "maker_place": label(bound),
            "first": first_place.source if first_place else "",
            "first_place": label(first_place),
            "failed": place.source if place else "",
            "failed_place": label(place),
            "step": step.moment.place.source if step else "",
            "step_place": label(step.moment.place if step else None),
            "state": state,
            "state_kind": state_kind.value,
            "memory": memory.place.source if memory is not None else "",
            "memory_place": label(memory.place if memory is not None else None),
            "before_loop": _before_loop(scene, part),
            "loss_place": _loss_of_another_cell(scene),
        },
        tensors=(fact,),
        events=_events(scene, part, first, why, cause),
        variant=why.value,
        details=replace(
            _places(scene, part, why),
            tensor=fact.names[0] if fact.names else part.boundary.name,
            state=state,
            state_kind=state_kind,
            stepped=step is not None,
            stored=storing,
            first_uses=_first_uses(scene, part, first, steps),
            inputs=_inputs(scene, part),
        ),
    )


def _first_uses(
    scene: Scene, part: FreedPart, first: TraceEvent | None, steps: tuple[Step, ...]
) -> tuple[Place, ...]:
    """Where the earlier loss reads what the failing one goes back through.

    The graph may end there only if no step writes that part: the failing backward needs it.
    """
    makers = [scene.history.maker(n) for n in part.used]
    if first is None or part.whole or any(s.writes is not False for s in steps):
        return ()
    if any(m is None for m in makers):
        return ()
    made = [bound_place(scene, m)[-1] for m in makers if m is not None]
    return uses_for(scene, first, distinct(made))


def _places(scene: Scene, part: FreedPart, why: Why) -> Details:
    """Where the old value is made, kept and read, and the statements to compute again."""
    user = None if part.user is None else scene.history.maker(part.user)
    kept = Details(why, kept=() if part.maker is None else bound_place(scene, part.maker))
    if part.whole and why is Why.COMPUTED_ONCE:
        use, *old = at_one_level([failing_path(scene), *paths_of(scene, part.old)])
        return replace(kept, use=use, old=distinct(old))
    if user is None:
        return kept
    return _with_levels(scene, part, user, replace(kept, reader=_reader(scene, part, user)))


_CONSTRUCTORS = ("__init__", "__post_init__")


def _reader(scene: Scene, part: FreedPart, user: TraceEvent) -> Place | None:
    """Where the new part reads the old value, if it passes that line only once."""
    old = {id(n) for n in part.old}
    makers = (scene.history.maker(n) for n in scene.graph.nodes if id(n) not in old)
    times = {m.order for m in makers if m is not None and _same_place(m.place, user.place)}
    return user.place if part.carried and len(times) == 1 else None


def _same_place(a: Place, b: Place | None) -> bool:
    return b is not None and (a.cell, a.file, a.line) == (b.cell, b.file, b.line)


def _with_levels(scene: Scene, part: FreedPart, user: TraceEvent, known: Details) -> Details:
    paths = paths_of(scene, part.old)
    made = [place for path in paths for place in path if place.function in _CONSTRUCTORS]
    if made:  # computed while an object was made: making another one is no way to repeat it
        return replace(known, made=distinct(made), attribute_uses=path_of(user))
    _, use, *old = at_one_level([failing_path(scene), path_of(user), *paths])
    return replace(known, use=use, old=distinct(old))


def _inputs(scene: Scene, part: FreedPart) -> tuple[Place, ...]:
    """The names that the statement behind the old value passes on with a graph of their own."""
    maker, slicer = part.maker, scene.slicer
    call = None if maker is None else value_call(scene, maker)
    given = call.node.args if call is not None and isinstance(call.node, ast.Call) else []
    old = (scene.history.maker(n) for n in part.old)
    lines = {p for m in old if m is not None for p in map(_line, path_of(m))}
    spots = [ExprAt(call.scope, a) for a in given if call is not None and isinstance(a, ast.Name)]
    return tuple(
        slicer.place(spot)
        for spot in spots
        if any(_line(slicer.place(m)) in lines for m in slicer.makers(spot))
    )


def _line(place: Place) -> tuple[object, ...]:
    return place.cell, place.file, place.line


def _why(scene: Scene, part: FreedPart, first: TraceEvent | None, steps: tuple[Step, ...]) -> Why:
    if _ran_twice(scene):
        return Why.CELL_AGAIN
    if _in_closure(scene):
        return Why.CLOSURE
    maker = part.maker
    this_round = maker is not None and first is not None and _in_this_round(scene, maker, first)
    if maker is not None and inside_failing_loop(scene, maker) and not this_round:
        if part.whole and first is not None and not _same_place(first.place, scene.place):
            return Why.SAME_LOSS
        return Why.COMPUTED_ONCE if came_before_loop(scene, maker) else Why.CARRIED
    if _in_loop(scene) and not this_round:
        return Why.COMPUTED_ONCE
    if part.whole and not steps:
        return Why.SAME_LOSS
    if any(s.spoils for s in steps):
        return Why.SHARED_STEPPED
    return Why.SHARED_APART if steps and all(s.writes is False for s in steps) else Why.SHARED


def _in_this_round(scene: Scene, maker: TraceEvent, first: TraceEvent) -> bool:
    """Whether the old value was made in the round of the loop that failed, not in an earlier one.

    Then the failing line has not run since, and nothing newer was made where it was made.
    """
    if not inside_failing_loop(scene, maker) or _same_place(first.place, scene.place):
        return False
    since = (m for m in scene.history.steps if m.op == "backward" and m.order > maker.order)
    if any(_same_place(m.place, scene.place) for m in list(since)[:-1]):
        return False
    makers = (scene.history.maker(n) for n in scene.graph.nodes)
    newer = (m for m in makers if m is not None and m.order > first.order)
    return not any(_same_place(m.place, maker.place) for m in newer)


def _in_closure(scene: Scene) -> bool:
    """The failing backward stands in a function that an optimizer's step called."""
    files = [f.filename.replace("\\", "/") for f in scene.incident.frames]
    inner = max((i for i, f in enumerate(scene.incident.frames) if f in _own(scene)), default=0)
    return any("torch/optim/" in name for name in files[:inner])


def _own(scene: Scene) -> tuple[LiveFrame, ...]:
    return scene.incident.user_frames


def _in_loop(scene: Scene) -> bool:
    return bool(failing_loops(scene))


def _ran_twice(scene: Scene) -> bool:
    """The failing cell ran before with the same text, and its loss comes from another cell."""
    number = scene.incident.cell
    cell = scene.program.cell(number)
    if cell is None or len(scene.incident.user_frames) != 1 or _in_loop(scene):
        return False
    earlier = [c for c in scene.index.runs_of(cell.text) if c.cell != number]
    root = scene.roots[0] if scene.roots else None
    made = None if root is None else scene.history.creation(root)
    return bool(earlier) and (made is None or made.place.cell != number)


def _before_loop(scene: Scene, part: FreedPart) -> str:
    """Where the old value was made, if outside of the loops around the failing line and before
    anything that they did: then no round of them has made it."""
    maker = part.maker
    if maker is None or inside_failing_loop(scene, maker):
        return ""
    rounds = [m.order for m in scene.history.steps if inside_failing_loop(scene, m)]
    return label(maker.place) if rounds and maker.order < min(rounds) else ""


def _loss_of_another_cell(scene: Scene) -> str:
    """Where the loss was made, if in a cell that ran before this one did for the first time."""
    root = scene.roots[0] if scene.roots else None
    made = None if root is None else scene.history.creation(root)
    failing = scene.program.cell(scene.incident.cell)
    if made is None or made.place.cell is None or failing is None:
        return ""
    first = min(c.cell for c in scene.index.runs_of(failing.text) if c.cell)
    return label(made.place) if made.place.cell < first else ""


def _memory(scene: Scene, part: FreedPart) -> Memoized | None:
    """What makes the function that computed the old value hand it out again."""
    made, running = part.maker, failing_path(scene)
    return None if made is None else remembered(scene.program, path_of(made), running)


def _storing(scene: Scene, part: FreedPart) -> Place | None:
    """The statement that puts the old value into a mere memory of earlier rounds."""
    found = stored(scene, part)
    return None if found is None or found.read_again else found.place


def _culprit(scene: Scene, part: FreedPart, memory: Memoized | None) -> TensorFact:
    bound = _bound_names(scene, part, memory)
    assigned = tuple(dict.fromkeys(n for n in (part.carried, *bound) if n))
    if part.carrier is not None:
        tensor, live = part.carrier.tensor, scene.names.of(part.carrier.tensor)
    else:
        tensor, live = None, _live_twins(scene, assigned)
        if part.whole and scene.roots:
            tensor, live = scene.roots[0], (*scene.names.of(scene.roots[0]), *live)
    first = _live_twins(scene, (part.carried,)) if part.carried else ()
    if memory is not None:
        first = (memory.name, *_live_twins(scene, (memory.name,)))
    names = tuple(dict.fromkeys((*first, *assigned[: len(part.carried) > 0], *live, *assigned)))
    names = (*names, *(n for n in map(_without_item, names[:2]) if n not in names))
    if tensor is None:
        return TensorFact(Role.CULPRIT, names, grad_fn=part.boundary.name)
    fact = scene.fact(Role.CULPRIT, tensor)
    return TensorFact(**{**vars(fact), "names": names or fact.names})


def _bound_names(scene: Scene, part: FreedPart, memory: Memoized | None) -> tuple[str, ...]:
    """The names that got the old value; of a remembered call none that got more than its value."""
    place = _bound(scene, part)
    value = getattr(statement_at(scene.program, place), "value", None)
    if memory is not None and memory.how == "decorator" and isinstance(value, ast.expr):
        called = memory.name in (ast.unparse(value), called_name(value))
        return assigned_names(scene, place) if called else ()
    return assigned_names(scene, place)


def _bound(scene: Scene, part: FreedPart) -> Place | None:
    """Where the old value is kept: the line to change."""
    return None if part.maker is None else bound_place(scene, part.maker)[-1]


def _live_twins(scene: Scene, assigned: tuple[str, ...]) -> tuple[str, ...]:
    """`model.state` for `self.state`: live tensors under the attribute that the maker assigns."""
    endings = tuple("." + a.split(".", 1)[1] for a in assigned if a.startswith("self."))
    exact = {a for a in assigned if not a.startswith("self.")}
    return tuple(
        n.name
        for n in scene.names.tensors
        if n.name in exact or _without_item(n.name).endswith(endings or ("\0",))
    )[:4]


def _carried_state(scene: Scene, part: FreedPart, names: tuple[str, ...]) -> tuple[str, StateKind]:
    """The name under which the failing line can reach the state, and whether it is a tuple."""
    frame = scene.incident.user_frames[-1]
    for name in (n for full in names for n in (full, _without_item(full))):
        value = resolve(_expression(name), frame)
        within = resolve(_expression(_without_item(name)), frame)
        if isinstance(within, (list, tuple)) and name != _without_item(name):
            continue  # one of many: cutting it alone is no repair; a tuple takes no new items
        if isinstance(value, list) and _grows(scene, name) and _is_local(frame, name):
            return name, StateKind.LIST
        if isinstance(value, torch.Tensor) and not value.is_leaf and _is_read(part, value):
            return name, StateKind.TENSOR
        if isinstance(value, tuple) and value and all(isinstance(v, torch.Tensor) for v in value):
            return name, StateKind.TUPLE
    return "", StateKind.UNKNOWN


def _is_read(part: FreedPart, value: torch.Tensor) -> bool:
    """Whether the next round gets the value under this name, and not out of a container."""
    return bool(part.carried) or part.carrier is None or value is part.carrier.tensor


def _is_local(frame: LiveFrame, name: str) -> bool:
    return head_of(name) in frame.frame.f_locals


def _grows(scene: Scene, name: str) -> bool:
    """Whether some statement of the program appends to a list of that name."""
    last = name.rsplit(".", 1)[-1]
    return any(f"{last}.append(" in source.text for source in scene.index.sources)


def _without_item(name: str) -> str:
    return name.rsplit("[", 1)[0] if name.endswith("]") else name


def _expression(name: str) -> ast.expr | None:
    try:
        return ast.parse(name, mode="eval").body
    except SyntaxError:
        return None


def _events(
    scene: Scene, part: FreedPart, first: TraceEvent | None, why: Why, at: Place | None
) -> tuple[Event, ...]:
    path = () if part.maker is None else bound_place(scene, part.maker)
    where: dict[str, Any] = {"place": path[-1], "chain": path[:-1]} if path else {}
    if at is not None and path and not _same_place(at, path[-1]):  # what keeps it is to change
        outer = next((i for i, p in enumerate(path) if _same_place(p, at)), None)
        where = {"place": at, "chain": path[:outer] if outer is not None else ()}
        if outer is None:
            where["certainty"] = Certainty.INFERRED
    cause = scene.event(What.CAUSE, part.maker, op=part.boundary.name)
    cause = None if cause is None else replace(cause, **where)
    if why is Why.SAME_LOSS:  # nothing is wrong with the loss: the first backward is to change
        cause = scene.event(What.CAUSE, first)
    found = [cause, scene.event(What.FREED, first), scene.failed()]
    return tuple(e for e in found if e is not None)
