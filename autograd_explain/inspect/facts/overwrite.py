"""Who saved the tensor, who overwrote it: the facts behind a version error.

The failing slot is read from the graph and is exact; the two statements come from the scene's
history and carry its certainty.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch

from ...model import Certainty, Event, Place, Relation, Role, TensorFact, What
from ...nodes import is_view
from ...program import called_name, expression_of, is_literal
from ..dataflow.safe_lookup import MISSING
from ..history import TraceEvent
from ..live.graph import SavedTensor
from ..live.names import shares_memory
from ..live.shapes import shape_of
from ..scene import Scene
from .callback_write import write_in_callback
from .expressions import expression_at
from .handed_write import Handed, handed

_MANY = 64
_VIEWS_OF_VIEWS = 6


@dataclass(frozen=True, eq=False)
class Overwrite:
    """A saved tensor that was written before backward needed it.

    `maker` saved it; `writes` are the writes since, oldest first, so the first is the guilty one.
    `optimizers` are the user's optimizers that update this tensor, by name; `beside` is each
    operation that saved a part of it that was overwritten since, with that part.  `stepped` is
    false where the steps of the program are known and none came after `maker`.  `in_library` says
    that `maker` is a call of a library's, inside which it was saved.
    """

    saved: SavedTensor
    maker: TraceEvent | None
    writes: tuple[TraceEvent, ...]
    optimizers: tuple[str, ...]
    beside: tuple[tuple[SavedTensor, TraceEvent], ...] = ()
    stepped: bool = True
    in_library: bool = False

    @property
    def guilty(self) -> TraceEvent | None:
        return self.writes[0] if self.writes else None

    @property
    def savers(self) -> int:
        """How many operations saved a part of it that was overwritten since."""
        return max(len(self.beside), 1)

    @property
    def alias(self) -> bool:
        """Whether it was written under another name: `flat = x.view(-1)`, then `flat[0] = 1`."""
        return bool(self.aliases)

    @property
    def aliases(self) -> tuple[TraceEvent, ...]:
        """What made the other name; a line that makes it and writes through it says so itself."""
        guilty = self.guilty
        via = () if guilty is None else guilty.via
        return tuple(m for m in via if m.place.line_id != self.writes[0].place.line_id)

    @property
    def by_step(self) -> bool:
        """Whether an optimizer's `step()` wrote it."""
        if self.guilty is not None:
            return self.guilty.op == "step"
        return bool(self.optimizers) and self.stepped


def find_overwrite(scene: Scene) -> Overwrite | None:
    """The saved tensor that the failed backward stumbled over, or None where none is found.

    The engine runs nodes in order of falling sequence number, so among slots that fit the
    message the newest node's is the one (torch/csrc/autograd/engine.cpp, CompareNodeTaskTime).
    """
    saved = next(_fitting(scene), None)
    if saved is None:
        return None
    holders = scene.names.holders(saved.tensor)
    maker, writes = scene.history.maker(saved.node), scene.history.writes(saved)
    writes = writes or _step_since(scene, saved, maker, [o for _, o in holders])
    told = Handed() if maker is not None and writes else _not_run(scene, saved)
    return Overwrite(
        saved,
        maker or told.saver,
        writes or told.writes,
        tuple(name for name, _ in holders),
        tuple(_savers(scene, saved)),
        _may_have_stepped(scene, maker),
        in_library=maker is None and told.saver is not None,
    )


def _not_run(scene: Scene, saved: SavedTensor) -> Handed:
    """What no run of the source gets to, where that is all that may have been seen."""
    if scene.history.certainty is not Certainty.INFERRED or _is_trained(saved.tensor):
        return Handed()
    told = handed(scene, saved)
    called = Handed() if told.writes else write_in_callback(scene, saved)
    return Handed(told.writes or called.writes, told.saver or called.saver)


def _step_since(
    scene: Scene,
    saved: SavedTensor,
    maker: TraceEvent | None,
    holders: Sequence[torch.optim.Optimizer],
) -> tuple[TraceEvent, ...]:
    """The step of a live optimizer that updates a parameter which was saved before it: the one call
    of it in the program, in a function that failed.  What a package has wrapped, no run of the
    source gets into."""
    inferred = scene.history.certainty is Certainty.INFERRED
    if maker is None or not inferred or not _is_trained(saved.tensor):
        return ()
    # Whose call it is the live object says, which may be of any package.
    nodes = scene.index.nodes(ast.Call, naming=("step",))
    calls = (scene.slicer.at(source, n) for source, n in nodes if called_name(n) == "step")
    owners = [(c, c.receiver and scene.slicer.value(c.receiver)) for c in calls]
    found = [c for c, owner in owners if any(owner is o for o in holders)]
    unknown = any(owner is MISSING for _, owner in owners)
    if unknown or len(found) != 1 or not _may_have_stepped(scene, maker):
        return ()
    place = scene.slicer.place(found[0])
    level = next((i for i, p in enumerate(scene.path) if p.function_id == place.function_id), None)
    before = [m for m in scene.history.steps if _is_before(m, place)]
    last = max((m.order for m in before), default=maker.order)
    if level is None or last < maker.order or not _is_before(maker, place):
        return ()
    return (TraceEvent(last + 1, place, "step", chain=scene.path[:level]),)


def _is_before(moment: TraceEvent, place: Place) -> bool:
    """Whether a moment's line, or one that led to it, stands before a place in one function."""
    return any(p.function_id == place.function_id and p.line < place.line for p in moment.path)


def _may_have_stepped(scene: Scene, maker: TraceEvent | None) -> bool:
    """Whether an optimizer may have stepped after `maker`: where steps are seen, one was."""
    steps = [m for m in scene.history.steps if m.op == "step"]
    return maker is None or not steps or steps[-1].order > maker.order


def further_writes(scene: Scene, found: Overwrite) -> tuple[Place, ...]:
    """The first writes to what else was overwritten, and those to the same tensor under another
    name: each would fail once `found` is repaired."""
    if found.guilty is None:
        return ()
    at = found.guilty.place.line_id
    others = (w for w in found.writes[1:] if _other_name(w, found.guilty))
    places = {w.place.line_id: w.place for w in others if w.place.line_id != at}
    for _, first in first_writes(scene):
        if first.op != "step" and first.place.line_id != at:
            places[first.place.line_id] = first.place
    return tuple(places.values())


def first_writes(scene: Scene, most: int = _MANY) -> Iterator[tuple[SavedTensor, TraceEvent]]:
    """What was saved and overwritten since, `most` at the most, each with its first write, where
    that is known."""
    for saved in islice(scene.graph.overwritten(), most):
        for first in islice(scene.history.writes(saved), 1):
            yield saved, first


def savers_of_write(scene: Scene, found: Overwrite) -> int:
    """How many operations saved what the guilty line has overwritten, in other tensors too: a loop
    may write to each of the states that a model has returned."""
    at = None if found.guilty is None else found.guilty.place.line_id
    alike = (saved for saved, first in first_writes(scene) if first.place.line_id == at)
    return max(sum(1 for _ in _different(scene, alike)), found.savers)


def saving_lines(scene: Scene) -> tuple[tuple[Place, ...], ...]:
    """The lines that led to each operation which saved anything that was overwritten since."""
    makers = (scene.history.maker(s.node) for s in islice(scene.graph.overwritten(), _MANY))
    return tuple(made.path for made in makers if made is not None)


def _other_name(write: TraceEvent, first: TraceEvent) -> bool:
    """Whether a write goes through another view, which a new tensor under the first's name leaves
    where it is."""
    made, before = ({(m.place.line_id, m.place.span) for m in w.via} for w in (write, first))
    return write.op != "step" and bool(made) and made != before


def _savers(scene: Scene, saved: SavedTensor) -> Iterator[tuple[SavedTensor, TraceEvent]]:
    """The different operations of the program that saved memory of the overwritten tensor."""
    others = islice(scene.graph.overwritten(), _MANY)
    yield from _different(scene, (o for o in others if shares_memory(o.tensor, saved.tensor)))


def _different(
    scene: Scene, saved: Iterable[SavedTensor]
) -> Iterator[tuple[SavedTensor, TraceEvent]]:
    """One of each operation of the program that saved these, with what made its node."""
    found = set()
    for other in saved:
        maker = scene.history.maker(other.node)
        if maker is not None:
            where = maker.place
            key = where.line_id, where.span, other.node.name, other.name
            if key not in found:
                found.add(key)
                yield other, maker


def read_operands(
    scene: Scene, overwrite: Overwrite, names: Sequence[str]
) -> tuple[tuple[Place, str], ...]:
    """The statements of several operations that saved it, with what each reads it as; () where one
    is not known to have read it."""
    each = (replace(overwrite, saved=saved, maker=maker) for saved, maker in overwrite.beside)
    read = [(o.maker.place, read_operand(o, names)) for o in each if o.maker is not None]
    known = len(read) > 1 and all(operand for _, operand in read)
    once = {(id(scene.program.statement_at(p)), operand): (p, operand) for p, operand in read}
    return tuple(once.values()) if known else ()


def _fitting(scene: Scene) -> Iterator[SavedTensor]:
    captures = scene.match.captures
    found = list(scene.graph.overwritten())
    for saved in found:
        expected, version = captures.get("expected"), captures.get("version")
        if expected is not None and str(saved.saved_version) != expected:
            continue
        if version is not None and str(saved.current_version) != version:
            continue
        if _shape_differs(captures.get("shape"), saved.tensor):
            continue
        yield saved
    # Old wordings carry no details; then the newest overwritten slot is the one.
    if not captures.get("expected"):
        yield from found


def _shape_differs(shape: str | None, tensor: torch.Tensor) -> bool:
    if shape is None:
        return False
    told = tuple(int(n) for n in shape.strip("[]").split(",") if n.strip())
    return told != shape_of(tensor)


def culprit(scene: Scene, overwrite: Overwrite) -> TensorFact:
    """The overwritten tensor, named by live paths first, then as the statements call it."""
    fact = scene.fact(
        Role.CULPRIT, overwrite.saved.tensor, *source_names(overwrite), saved=overwrite.saved
    )
    aliases = scene.names.of_aliases(overwrite.saved.tensor)
    names = tuple(dict.fromkeys((*fact.names, *aliases)))
    read = "" if names else read_operand(overwrite)
    spelled = (_base(read), read, *_viewed(scene, overwrite)) if read else ()
    names = names or tuple(dict.fromkeys(n for n in (*spelled, _computed(scene, overwrite)) if n))
    return TensorFact(**{**vars(fact), "names": names})


def _computed(scene: Scene, overwrite: Overwrite) -> str:
    """The call that computed the tensor, `torch.tanh(x)`, where it has no other name: a function
    returned it to a library."""
    maker = overwrite.maker
    own = maker is not None and maker.inside is None and overwrite.saved.name == "result"
    spot = expression_at(scene, maker.place) if maker is not None and own else None
    return spot.text if maker is not None and spot and called_name(spot.node) == maker.op else ""


def _viewed(scene: Scene, overwrite: Overwrite) -> Iterator[str]:
    """What the operand is a view of, as the statements that made the views spell it: `output` of
    `flat = output.flatten(2)`."""
    node = overwrite.saved.node
    for _ in range(_VIEWS_OF_VIEWS):
        made = set(node.children)
        view = scene.graph.find(made.pop()) if len(made) == 1 else None
        if view is None or not is_view(view.name):
            return
        maker, node = scene.history.maker(view), view
        if maker is not None:
            yield from map(_base, maker.operands[:1])


def source_names(overwrite: Overwrite) -> tuple[str, ...]:
    """How the writing and the saving statement call the tensor, the written name first."""
    names = []
    if overwrite.guilty is not None and not _renormalises(overwrite.guilty):
        names = [overwrite.guilty.target]
        # `hard = prob.detach()` then `hard[…] = 0`: prob is what the user knows.
        names = [o for m in overwrite.guilty.via for o in m.operands[:1]] + names
    if overwrite.maker is not None and overwrite.saved.name == "result":
        names.append(overwrite.maker.target)
    return tuple(dict.fromkeys(n for n in names if n))


def _renormalises(write: TraceEvent) -> bool:
    """A lookup with `max_norm`: what the call is given is the indices, not the table."""
    return write.op.startswith("embedding")


def events(scene: Scene, overwrite: Overwrite) -> tuple[Event, ...]:
    """saved, changed (guilty first), how the alias came about, failed."""
    saved = scene.event(
        What.SAVED,
        overwrite.maker,
        version=overwrite.saved.saved_version,
        op=overwrite.saved.node.name,
    )
    changed = [scene.event(What.CHANGED, moment) for moment in overwrite.writes]
    via = [scene.event(What.CREATED, m, relation=Relation.ALIAS) for m in overwrite.aliases]
    return tuple(e for e in (saved, *changed, *via, scene.failed()) if e is not None)


def is_parameter(overwrite: Overwrite) -> bool:
    """Whether the overwritten tensor is a leaf that is trained (or a view of one)."""
    return _is_trained(overwrite.saved.tensor)


def _is_trained(tensor: torch.Tensor) -> bool:
    base = tensor._base if tensor._is_view() else None
    leaf = tensor if base is None else base
    return leaf.is_leaf and leaf.requires_grad


def read_operand(overwrite: Overwrite, names: Sequence[str] = ()) -> str:
    """How the saving statement spells the operand that holds the overwritten tensor, "" if unknown.

    The operand that names the written tensor; the one that ends as one of its live `names` does
    (`self.items.weight` is `model.items.weight`); what all are parts of (`flat @ flat.t()`); of two
    the one that the slot stands for (MulBackward0 calls them `self` and `other`).
    """
    maker = overwrite.maker
    if maker is None or overwrite.saved.name == "result":
        return ""
    operands = tuple(o for o in maker.operands if o and not _is_number(o))
    known = {_base(name) for name in source_names(overwrite)}
    named = [o for o in operands if _base(o) in known]
    named = named or [o for o in operands if _base(o) in names]
    named = named or [o for o in operands if any(_same_attribute(o, name) for name in names)]
    if named:
        return named[0]
    if overwrite.saved.name in _OF_LAYER and is_parameter(overwrite):
        operands = tuple(o for o in operands if o != "self" and not _is_owner(o, names))
        if len(operands) < 2:
            return ""  # the layer's own, which its call does not spell
    bases = {_base(o) for o in operands}
    if len(operands) > 1 and len(bases) == 1 and not any(_is_owner(b, names) for b in bases):
        return bases.pop()
    at = 0 if len(operands) == 1 else _OPERAND.get(overwrite.saved.name, 2)
    return operands[at] if at < len(operands) <= 2 else ""


def _is_number(operand: str) -> bool:
    """Whether an operand is no tensor: `-1` and `True` of `h.std(-1, keepdim=True)`."""
    node = expression_of(operand)
    return node is not None and is_literal(node)


def _same_attribute(operand: str, name: str) -> bool:
    """Whether two paths may be the same attribute of one object that has two names."""
    head, _, attributes = operand.partition(".")
    return head.isidentifier() and bool(attributes) and name.endswith(f".{attributes}")


def _is_owner(operand: str, names: Sequence[str]) -> bool:
    return any(name.startswith(f"{operand}.") for name in names)


#: The slots for what a layer has beside its input.
_OF_LAYER = ("mat2", "weight")
_OPERAND = {"self": 0, "other": 1, "mat2": 1, "vec": 1, "exponent": 1}


def _base(expression: str) -> str:
    """`hidden` of `hidden[:, t]`, `self.queue` of `self.queue.t()`."""
    head = expression.split("[", 1)[0]
    return head.split("(", 1)[0].rsplit(".", 1)[0] if "(" in head else head
