"""The places that the rewrites go by: where the old value is made, kept and read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograd_explain.arguments import parameters
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.cut_kinds import cut_of
from autograd_explain.inspect.dataflow.reaching_definitions import head_of
from autograd_explain.inspect.dataflow.syntax import names_in, returns
from autograd_explain.inspect.facts.call_levels import Path, at_one_level, distinct
from autograd_explain.inspect.facts.container_puts import live_object
from autograd_explain.inspect.facts.loop_carried import LoopCarried, StateKind
from autograd_explain.inspect.facts.torch_call import gone_back_from
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Place
from autograd_explain.program import Function, called_name, is_of_package

from .carried_state import CarriedState, Each
from .constants import Constants
from .evidence import Evidence
from .freed_part import FreedPart
from .handed_on import backward_before
from .held_leaf import replaces_held_leaf
from .reason import SHARED, Why, is_kept_late
from .recomputed import read_by_checkpoints
from .step_effect import held_by, leaves_below, params_of
from .unread_result import Unread
from .weight import weighs_log_probability

_CONSTRUCTORS = ("__init__", "__post_init__")
_MANY = 400
_STEPPED = (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)


@dataclass(frozen=True)
class Details:
    """What the rewrites go by; () and None where it is not known."""

    why: Why
    tensor: str = ""
    state: str = ""  #: the name under which the failing line reaches it
    state_kind: StateKind = StateKind.UNKNOWN
    others: tuple[str, ...] = ()  #: what is carried with it
    last: Place | None = None  #: where a list is read last in a round
    inside: bool = False  #: a library went backward, and goes through the rounds
    loop: LoopCarried | None = None  #: what a loop around the failing line carries
    bare: bool = False  #: cut off from it, the new part would lead to nothing that is trained
    each: Each | None = None  #: the objects of a container that carry their own
    stepped: bool = False  #: an optimizer stepped in between
    spares: bool = False  #: and every such step leaves what is behind the old value as it is
    use: Place | None = None  #: where the new part begins, at the level of the failing line
    old: tuple[Place, ...] = ()  #: the statements that computed the old part, at that level
    reader: Place | None = None  #: the only line at which the new part reads the old value
    made: tuple[Place, ...] = ()  #: in a constructor
    attribute_uses: tuple[Place, ...] = ()  #: of what was made there
    handed: Place | None = None  #: the object that a library's call keeps it in
    stored: Place | None = None  #: what puts it into a mere memory of earlier rounds
    stored_beside: tuple[Place, ...] = ()  #: what puts further old values there
    first_uses: tuple[Place, ...] = ()  #: where the earlier loss reads the shared part
    second_uses: tuple[Place, ...] = ()  #: where the failing one does, which need not train it
    weights: tuple[Place, ...] = ()  #: where a loss reads it as the weight of a log-probability
    derivatives: tuple[Place, ...] = ()  #: the calls of torch.autograd.grad that a loss is made of
    trained: bool = False  #: one is with respect to what is trained: it may be meant as a step
    #: names with a graph, handed to what made the old value, behind which no step since the earlier
    #: backward trains anything: its loss does not need their graph
    first_ends: tuple[Place, ...] = ()
    second_ends: tuple[Place, ...] = ()  #: … and no step behind the failing line does
    #: where checkpoints are asked for that each go back through it
    reentrant: tuple[Place, ...] = ()
    options: tuple[tuple[Place, str], ...] = ()  #: that make objects of a library keep it
    constant: bool = False  #: it belongs to an object of a library that nothing trains here
    lasts: bool = False  #: an object of a library still holds what it has computed once
    emptied: str = ""  #: the module that empties it where it is put into training mode
    cache: bool = False  #: an object of a library keeps it until it is None again
    argument: str = ""  #: what the function was given that keeps the old value for it
    filled: str = ""  #: what the function calls that of its input into which it wrote the old value
    constants: Constants | None = None  #: the values that the loop need not train
    late: bool = False  #: a round keeps it behind its own backward: nothing of that needs its graph
    held: bool = False  #: it took the name of a leaf that an optimizer steps
    unread: Unread | None = None  #: what was computed anew, and nothing reads it
    before: Place | None = None  #: the backward of the same loss that another function has called
    shared_object: Place | None = None  #: the first call that handed out the object of a later one


def details_of(
    scene: Scene,
    known: Evidence,
    why: Why,
    names: tuple[str, ...],
    state: CarriedState,
    storing: Place | None,
) -> Details:
    """What the rewrites go by, with the names of the old value."""
    first_uses, inputs = _first_uses(scene, known), _inputs(scene, known)
    derivative = known.derivative if why is Why.DERIVATIVE else None
    return replace(
        _places(known, why),
        derivatives=() if derivative is None else derivative.calls,
        trained=derivative is not None and derivative.trained,
        tensor=names[0],
        state=state.name,
        state_kind=state.kind,
        others=state.others,
        last=state.last,
        inside=known.part.first is not None and known.part.first.inside is not None,
        loop=state.loop,
        bare=not known.part.leads_on,
        each=state.each,
        stepped=known.stepped is not None,
        spares=bool(known.steps) and all(s.writes is False for s in known.steps),
        stored=storing,
        reentrant=read_by_checkpoints(scene, known.part),
        first_uses=first_uses,
        second_uses=_second_uses(scene, known) if why in SHARED else (),
        weights=_weights(scene, known),
        first_ends=_first_ends(scene, known, inputs),
        second_ends=_second_ends(scene, known, inputs) if why in SHARED else (),
        argument=_argument(scene, known.part, names[0]),
        filled=_filled(scene, known.part) if why is Why.CARRIED else "",
        late=why is Why.CARRIED and is_kept_late(known),
        held=why is Why.CARRIED and replaces_held_leaf(scene, known.part),
        before=backward_before(scene, known) if why in (Why.SAME_LOSS, Why.SHARED) else None,
    )


def _argument(scene: Scene, part: FreedPart, tensor: str) -> str:
    """`data` of `data.x = conv(data.x, edges)` in a function that is given `data` and returns it,
    or of `data.x = self.embed(data.x)` where a loop goes through the data, or a package's class
    holds it, as not a state: the next round reads in its input what this one has computed."""
    owner, place = tensor.rpartition(".")[0], None if part.binding is None else part.binding.place
    source = scene.program.source_at(place)
    function = None if source is None or place is None else source.function_at(place)
    reader = None if part.reader is None else part.reader.place
    if place is None or function is None or owner == "self" or owner not in parameters(function):
        return ""
    if _given_back(scene, part):
        return ""
    anew = _of_itself(function, scene.program.statement_at(place), owner, tensor)
    if anew and (_is_of_loop(scene, part, owner) or _is_of_package(scene, part, owner)):
        return owner
    same = reader is not None and reader.function_id == place.function_id
    return owner if same and owner in map(ast.unparse, returns(function)) else ""


def _of_itself(function: Function, statement: ast.AST | None, owner: str, tensor: str) -> bool:
    """Whether a value is computed of the one before it, and of nothing else that the function is
    given or computes."""
    if not isinstance(statement, ast.Assign):
        return False
    stored = (n.id for n in names_in(function) if isinstance(n.ctx, ast.Store))
    read = {n.id for n in names_in(statement.value)} & {*stored, *parameters(function)}
    inside = (n for n in ast.walk(statement.value) if isinstance(n, ast.Attribute))
    return read <= {owner, "self"} and any(ast.unparse(n) == tensor for n in inside)


def _is_of_loop(scene: Scene, part: FreedPart, owner: str) -> bool:
    """Whether a caller hands in what a loop around it goes through, or the failing line stands in a
    loop that goes through what has the function's name for it."""
    failing = scene.program.statement_at(scene.place)
    for statement, around in _calling(scene, part):
        each = {n.id for loop in around if isinstance(loop, ast.For) for n in names_in(loop.target)}
        if each & (_given(statement) | ({owner} if statement is failing else set())):
            return True
    return False


def _is_of_package(scene: Scene, part: FreedPart, owner: str) -> bool:
    """Whether what a caller hands in, or the program calls as the function does, is an object of a
    package's class that is no module: a batch of a data set."""
    named = {owner, *(name for statement, _ in _calling(scene, part) for name in _given(statement))}
    found = (live_object(scene, name) for name in named)
    return any(is_of_package(type(f)) and not is_a(f, torch.nn.Module) for f in found)


def _calling(scene: Scene, part: FreedPart) -> Iterator[tuple[ast.stmt, list[ast.AST]]]:
    """The statements that led to what keeps the old value, and the failing one, with what each
    stands in."""
    for place in (*(() if part.binding is None else part.binding.path[:-1]), scene.place):
        source, statement = scene.program.source_at(place), scene.program.statement_at(place)
        if source is not None and statement is not None:
            yield statement, [*source.around(statement)]


def _given(statement: ast.stmt) -> set[str]:
    """The names in the arguments of a statement's calls."""
    calls = (n for n in ast.walk(statement) if isinstance(n, ast.Call))
    return {n.id for call in calls for arg in call.args for n in names_in(arg)}


def _filled(scene: Scene, part: FreedPart) -> str:
    """`x` of `x[missing] = self.default[kind]` in a function that is given x, or what holds it: the
    next round is given the same tensor."""
    place = None if part.binding is None else part.binding.place
    source, statement = scene.program.source_at(place), scene.program.statement_at(place)
    function = None if source is None or place is None else source.function_at(place)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    base = target.value if isinstance(target, ast.Subscript) else None
    if function is None or not isinstance(base, ast.Name) or _given_back(scene, part):
        return ""
    given = set(parameters(function)) - {"self"}
    made = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and _gives(n, base.id)]
    if len(made) == 1 and isinstance(made[0].value, (ast.Name, ast.Attribute)):
        return base.id if head_of(ast.unparse(made[0].value)) in given else ""
    return base.id if not made and base.id in given else ""


def _gives(statement: ast.Assign, name: str) -> bool:
    return any(isinstance(t, ast.Name) and t.id == name for t in statement.targets)


def _given_back(scene: Scene, part: FreedPart) -> bool:
    """Whether the caller gives the result the name that it handed in: `state = step(state)`."""
    outer = () if part.binding is None else part.binding.path[:-1]
    calls = [scene.program.statement_at(place) for place in outer]
    return any(
        ast.unparse(target) == ast.unparse(node)
        for call in calls if isinstance(call, ast.Assign)
        for target in call.targets for node in ast.walk(call.value) if isinstance(node, ast.expr)
    )  # fmt: skip


def _places(known: Evidence, why: Why) -> Details:
    """Where the old value is made, kept and read, and the statements to compute again."""
    part, reader = known.part, known.part.reader
    paths = [moment.path for moment in (*part.made, *part.handed)]
    if part.read_by and part.maker is not None:
        made = (p for p in reversed(part.maker.path) if p.function in _CONSTRUCTORS)
        return Details(why, made=(next(made),), attribute_uses=part.read_by)
    if why is Why.CLOSURE or (part.whole and why is Why.COMPUTED_ONCE):
        return to_repeat(why, known.failed, None, paths)
    if reader is None and part.read_at is not None and why is Why.COMPUTED_ONCE:
        levels = [p.function_id for p in known.failed]
        level = levels.index(at) if (at := part.read_at.function_id) in levels else 0
        read = (*known.failed[:level], part.read_at)
        _, use, *old = at_one_level([known.failed, read, *paths])
        return Details(why, use=use, old=distinct(old))
    if reader is None:
        return Details(why)
    found = to_repeat(why, known.failed, reader.path, paths)
    return replace(found, reader=reader.place if part.read_once else None)


def to_repeat(why: Why, failed: Path, reader: Path | None, paths: Sequence[Path]) -> Details:
    """What to compute again, and where: for the line that `failed` leads to, or for the `reader` of
    the old value.  `paths` lead to what made it, in the order it ran in."""
    if reader is None:
        use, *old = at_one_level([failed, *paths])
        return Details(why, use=use, old=distinct(old))
    within = [[place for place in path if place.function in _CONSTRUCTORS] for path in paths]
    made = [places[-1] for places in within if places]  # a part's own, not that of the whole
    if made:  # computed while an object was made: making another one is no way to repeat it
        return Details(why, made=distinct(made), attribute_uses=reader)
    _, use, *old = at_one_level([failed, reader, *paths])
    return Details(why, use=use, old=distinct(old))


def _first_uses(scene: Scene, known: Evidence) -> tuple[Place, ...]:
    """Where the earlier loss reads what the failing one goes back through.

    The graph may end there only if no step writes that part: the failing backward needs it.
    """
    part = known.part
    if part.first is None or part.whole or any(s.writes is not False for s in known.steps):
        return ()
    earlier = _earlier_loss(scene, known)
    reads = _reads_of(scene, known, earlier, known.roots)
    # The loss itself cannot be cut off: nothing would be left to go back through.
    return () if earlier is not None and scene.slicer.place(earlier) in reads else reads


def _second_uses(scene: Scene, known: Evidence) -> tuple[Place, ...]:
    """Where the failing loss reads what the earlier one has trained by then.

    The graph may end there only if what this one would add to its gradients is thrown away: no
    step behind the failing line takes them, and they begin anew before the earlier backward.
    """
    earlier, first, place = _earlier_loss(scene, known), known.part.first, scene.place
    if earlier is None or first is None or place is None or known.part.whole:
        return ()
    if len(known.roots) != 1 or first.place.function_id != place.function_id:
        return ()
    leaves = {id(leaf) for leaf in leaves_below(known.part.old)}
    cleared = _owners(scene, "zero_grad", lambda line: line <= first.place.line)
    steps = _owners(scene, "step", lambda line: line > place.line)
    trained = leaves and any(s.writes for s in known.steps)
    anew = leaves <= {held for owner in cleared for held in params_of(owner)}
    apart = any(is_a(owner, torch.optim.Optimizer) for owner in steps) and all(
        is_a(owner, _STEPPED) and leaves.isdisjoint(params_of(owner)) for owner in steps
    )
    return _reads_of(scene, known, known.roots[0], (earlier,)) if trained and anew and apart else ()


def _owners(scene: Scene, method: str, on: Callable[[int], bool]) -> list[Any]:
    """What has a method called on such lines of the failing line's function."""
    program, place = scene.program, scene.place
    source, statement = program.source_at(place), program.statement_at(place)
    if source is None or statement is None:
        return []
    nodes = ast.walk(source.function_around(statement) or source.tree)
    called = [n for n in nodes if isinstance(n, ast.Call) and called_name(n) == method]
    owners = [getattr(n.func, "value", n) for n in called if on(n.lineno + source.offset)]
    return [live_object(scene, ast.unparse(owner)) for owner in owners]


def _weights(scene: Scene, known: Evidence) -> tuple[Place, ...]:
    """Where one of the losses reads the shared part, if it only weighs a log-probability there."""
    earlier, shared = _earlier_loss(scene, known), known.part.boundary.node
    if earlier is None or known.part.whole:
        return ()
    value = scene.slicer.value(earlier)
    if weighs_log_probability(value, shared):
        return _reads_of(scene, known, earlier, known.roots)
    if len(known.roots) == len(scene.roots) == 1 and weighs_log_probability(*scene.roots, shared):
        return _reads_of(scene, known, known.roots[0], (earlier,)) or _reads_of_line(scene, known)
    return ()


def _reads_of_line(scene: Scene, known: Evidence) -> tuple[Place, ...]:
    """Where the only line that makes something new of the old value names it."""
    part, reader = known.part, known.part.reader
    old = {id(node) for node in part.old}
    users = [p for p in scene.graph.parents(part.boundary) if id(p) not in old]
    lines = {None if (m := scene.history.maker(u)) is None else m.place.line_id for u in users}
    source = None if reader is None else scene.program.source_at(reader.place)
    if reader is None or source is None or lines != {reader.place.line_id} or not part.carried:
        return ()
    statement = scene.program.statement_at(reader.place)
    names = () if statement is None else names_in(statement)
    found = (n for n in names if n.id == part.carried)
    return tuple(source.place(n.lineno, reader.place.function, n) for n in found)


def _inputs(scene: Scene, known: Evidence) -> tuple[ExprAt, ...]:
    """The names that the statement behind the old value passes on with a graph of their own."""
    slicer, call = scene.slicer, known.calls.made
    given = call.node.args if call is not None and isinstance(call.node, ast.Call) else []
    lines = {place.line_id for moment in known.part.made for place in moment.path}
    spots = [call.inside(a) for a in given if call is not None and isinstance(a, ast.Name)]
    return tuple(
        spot for spot in spots if any(slicer.place(m).line_id in lines for m in slicer.makers(spot))
    )


def _leaves_behind(scene: Scene, spot: ExprAt) -> set[int]:
    """The leaves behind a live value of the failing graph, by identity."""
    value = scene.slicer.value(spot)
    node = scene.graph.find(value.grad_fn) if is_a(value, torch.Tensor) else None
    return set() if node is None else {id(leaf) for leaf in leaves_below(scene.graph.below([node]))}


def _first_ends(scene: Scene, known: Evidence, inputs: Sequence[ExprAt]) -> tuple[Place, ...]:
    """The inputs at which the graph of the earlier loss may end, as far as is known."""
    steps = [held_by(scene, call) for _, call in known.calls.steps]
    held = set[int]().union(*(ids for ids in steps if ids is not None))
    return tuple(
        scene.slicer.place(spot) for spot in inputs if held.isdisjoint(_leaves_behind(scene, spot))
    )


def _second_ends(scene: Scene, known: Evidence, inputs: Sequence[ExprAt]) -> tuple[Place, ...]:
    """The inputs at which the graph of the failing loss may end, where the old value is computed
    again for it: the earlier loss reads the first one, all of it before that."""
    earlier, reader, place = _earlier_loss(scene, known), known.part.reader, scene.place
    if earlier is None or reader is None or place is None:
        return ()
    steps = _owners(scene, "step", lambda line: line > place.line)
    if not steps or not all(is_a(owner, _STEPPED) for owner in steps):
        return ()
    held = set[int]().union(*map(params_of, steps))
    first = _reads_of(scene, known, earlier, known.roots)
    leaves = {id(leaf) for leaf in leaves_below(known.part.old)}
    if not first or any(p.line >= reader.place.line for p in first) or not held & leaves:
        return ()
    behind = ((spot, _leaves_behind(scene, spot)) for spot in inputs)
    return tuple(scene.slicer.place(spot) for spot, own in behind if own and held.isdisjoint(own))


def _earlier_loss(scene: Scene, known: Evidence) -> ExprAt | None:
    first = known.calls.first
    return None if first is None else gone_back_from(scene, first)


def _reads_of(
    scene: Scene, known: Evidence, loss: ExprAt | None, others: tuple[ExprAt, ...]
) -> tuple[Place, ...]:
    """The expressions that hand the values of the shared part to a backward's loss.

    None of them leads to the other losses.  () where one of the values reaches the loss in another
    way: ending the graph at the rest would be no repair.
    """
    statements = [binding.statement for binding in known.part.shared]
    if loss is None or not statements or None in statements:
        return ()
    needed = {id(s) for root in others for s in _trail(scene, root, statements)}
    found: list[ExprAt] = []
    for statement in statements:
        mine = [
            next((s for s in reversed(via) if id(s.node) not in needed), None)
            for via in _reads(scene, loss, statement)
        ]
        if not mine or None in mine:
            return ()
        found += (s for s in mine if s is not None)
    slicer = scene.slicer
    return tuple(dict.fromkeys(slicer.place(spot) for spot in found))


def _trail(scene: Scene, root: ExprAt, statements: list[ast.stmt | None]) -> Iterator[ast.AST]:
    for statement in statements:
        for via in _reads(scene, root, statement):
            yield from (s.node for s in via)


def _reads(scene: Scene, loss: ExprAt, statement: ast.stmt | None) -> Iterator[tuple[ExprAt, ...]]:
    """The names through which each value made by a statement came to the loss with its graph."""
    slicer = scene.slicer
    pending, seen = [loss], {(id(loss.node), id(loss.scope.call))}
    while pending and len(seen) < _MANY:
        for maker in slicer.makers(pending.pop()):
            if _stands_in(scene, maker, statement):
                yield maker.via
            elif (id(maker.node), id(maker.scope.call)) not in seen:
                seen.add((id(maker.node), id(maker.scope.call)))
                pending += slicer.operands(maker) if cut_of(slicer, maker) is None else ()


def _stands_in(scene: Scene, spot: ExprAt | None, statement: ast.stmt | None) -> bool:
    """Whether the statement computed it, itself or in what it calls."""
    slicer = scene.slicer
    while spot is not None:
        if slicer.statement(spot) is statement:
            return True
        spot = spot.scope.call
    return False
