"""What optimizers step on: gradients thrown away, never cleared, or never there."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from torch import Tensor
from torch.optim import Optimizer

from ...nodes import GraphTraversal
from ..observe.event_log import Born, EventLog, Wrote
from ..observe.tensor_facts import address, is_zero, storage, unseen, version
from .finding import CandidateFault, Mark, Marks, TimeShare, Weak, weak
from .graph_cuts import Cuts, CutSite
from .hand_updates import HandUpdates
from .left_by_others import LeftByOthers
from .stale_values import StaleValues
from .zero_gradients import ZeroGradients, cancelling, has_zero_derivative

_NEVER = Mark(0, 0)
_MAX_PAST = 20
_MAX_WALK = 5_000
_MAX_FILLS = 100
_DESERTED = 2  #: steps in vain
#: What is said to end the graph where the line also says so by a word.
_WITHOUT_A_WORD = ("no_grad", "operation")
_FURTHER = ("numpy", "number")  #: which are said to be below all that the cuts before them were


@dataclass
class Followed:
    """An optimizer that was seen, and how its gradients fared since its last step."""

    optimizer: weakref.ref[Optimizer]
    given: int  #: when it last got parameters, else when it was first seen
    steps: int = 0
    stepped: Mark = _NEVER
    zeroed: Mark | None = None  #: since the last step, where there was a gradient to clear
    cleared: bool = False  #: since the last step, by whatever means
    cleared_at: int = 0  #: when that was, the last time
    ever_cleared: bool = False
    probe: Weak | None = None  #: the first gradient as it was after the last step
    probe_version: int = 0
    with_gradient: set[int] = field(default_factory=set)
    without: dict[int, Weak] = field(default_factory=dict)
    shapes: dict[int, str] = field(default_factory=dict)  #: of those without
    reached: set[int] = field(default_factory=set)  #: of those, what some backward did fill
    frozen: list[Weak] = field(default_factory=list)  #: at a step that found no gradient at all
    first: Weak | None = None  #: the first parameter
    cuts: dict[int, tuple[Mark, set[int]]] = field(default_factory=dict)
    all_had: bool = False  #: a step at which every parameter had a gradient
    leftovers: list[tuple[Mark, Mark]] = field(default_factory=list)
    too_late: set[int] = field(default_factory=set)  #: sites of writes between a step and clearing
    too_early: set[int] = field(default_factory=set)  #: sites that clipped before a backward
    #: Clearings since the last step of gradients that no step had used, with the backward's site.
    spilt: list[tuple[int, Mark]] = field(default_factory=list)
    spills: list[int] = field(default_factory=list)  #: how many, before each of the last steps
    filled: Mark | None = None  #: the last backward after which there was a gradient
    fills: list[Mark] = field(default_factory=list)  #: those that added to it since the last step
    seen: tuple[int, int] = (0, 0)  #: the first gradient and its version after the last backward
    deserted: int = 0  #: the last steps, one after the other, whose gradients went to new leaves
    fed: int = 0  #: when the last step was that found a gradient

    @property
    def holds(self) -> list[Tensor]:
        """What its optimizer steps, in its order; [] once that is gone."""
        optimizer = self.optimizer()
        return [] if optimizer is None else list(_parameters(optimizer))


class _Filled(NamedTuple):
    """A leaf, and when a backward first filled its `.grad`; a lower `rank` of the same backward is
    of a leaf that the forward pass used later.  `here` is the first backward of the cell that was
    seen to fill it, and `beside` the identities of all leaves that the newest one filled."""

    leaf: Weak
    clock: int
    rank: int
    here: int
    beside: set[int]


class Gradients:
    """Follows every optimizer that steps or clears.

    `held` are the parameters that some step was given.  An optimizer that lived in a function is
    gone when its cell has ended: `past` are the last of those.
    """

    def __init__(self, log: EventLog, cuts: Cuts) -> None:
        self.log = log
        self.cuts = cuts
        self.zeros = ZeroGradients(log)
        self.by_hand = HandUpdates(log)
        self.stale = StaleValues(log)
        self._others = LeftByOthers()
        self.found: list[CandidateFault] = []
        self.generated: list[CandidateFault] = []  #: as the last step has shown
        self.followed: dict[int, Followed] = {}
        self.past: deque[Followed] = deque(maxlen=_MAX_PAST)
        self.held: dict[int, Weak] = {}
        self.last_step = _NEVER
        self.since = 0  #: when the cell began
        self._steps: deque[tuple[int, int]] = deque(maxlen=_MAX_PAST)  #: clock and optimizer
        self._looks = TimeShare(share=0.003, free=20)
        self._settled: set[int] = set()  #: sites whose last look showed no new leaf
        self._filled: dict[int, _Filled] = {}
        #: The frozen leaves in the last graph that was looked at, and the last node that used each.
        self.dropped: dict[int, int] = {}
        self._old: dict[int, tuple[Weak, int]] = {}  #: gradients that were there, and their version
        self._seen_all = True
        self._backward: Mark | None = None
        self._first = 0
        self._cleared: Mark | None = None  #: the last clearing by something else
        self.was_read = 0  #: when a gradient was last read, which may be of use without a step
        self._stepping = 0  #: when a step began
        self._not_clipped: dict[int, Mark] = {}  #: leaves that had no gradient when it was clipped

    @property
    def last_backward(self) -> Mark:
        """The last one that fills `.grad`."""
        return self._backward or _NEVER

    @property
    def leaves(self) -> list[Tensor]:
        """Those that steps were given and, as far as that was looked at, backwards filled."""
        known = {**self.held, **{key: filled.leaf for key, filled in self._filled.items()}}
        return [leaf for weak in known.values() if (leaf := weak()) is not None]

    def begin(self, since: int) -> None:
        """A cell begins: what gradients there are was told, or is none of its own."""
        self.since = since
        self.found.clear()
        self.generated.clear()
        self.zeros.begin()
        self.by_hand.begin()
        self.stale.begin()
        self._settled.clear()
        leaves = ((key, filled.leaf()) for key, filled in self._filled.items())
        old = ((key, leaf.grad) for key, leaf in leaves if leaf is not None)
        self._old = {key: (weak(g), version(g)) for key, g in old if g is not None}

    def before_backward(self, roots: tuple[Tensor, ...], mark: Mark) -> None:
        self._first = self._first or mark.clock
        self._backward = mark
        self._others.before_backward(roots, mark.site)
        if self._looks.allows(free=mark.site not in self._settled):
            with self._looks:
                known = len(self._filled)
                stale = self._look(roots)
            if len(self._filled) == known and not stale and not self.dropped:
                self._settled.add(mark.site)

    def _look(self, roots: tuple[Tensor, ...]) -> bool:
        """Note the leaves that a backward is about to fill; whether through an old value."""
        walk = GraphTraversal((r.grad_fn for r in roots), limit=_MAX_WALK)
        zeros = old = False
        clock, beside, user = self.last_backward.clock, set[int](), 0
        self.dropped.clear()
        # A leaf's node comes right behind the last operation that used it.
        for rank, node in enumerate(walk):
            zeros = zeros or has_zero_derivative(node.node) or bool(cancelling(node.node))
            old = old or node.sequence < self.stale.bound
            self.cuts.applies(node.node)
            leaf = getattr(node.node, "variable", None)
            if not isinstance(leaf, Tensor):
                user = node.sequence
            elif not leaf.requires_grad:
                self.dropped[id(leaf)] = user
            else:
                key = id(leaf)
                beside.add(key)
                known = self._filled.get(key)
                if known is None:
                    gone = Weak(leaf, partial(_release, self._filled, key))
                    known = _Filled(gone, clock, rank, clock, beside)
                here = known.here if known.here > self.since else clock
                self._filled[key] = known._replace(here=here, beside=beside)
        self._seen_all = self._seen_all and walk.complete
        if zeros:
            self.zeros.look(roots, self.last_backward)
        return old and self.stale.look(roots, self.last_backward)

    def may_have_filled(self, parameter: Tensor) -> bool:
        """Whether a backward of this cell filled its `.grad`, as far as that was looked at."""
        gradient, (old, number) = parameter.grad, self._old.get(id(parameter), (None, 0))
        if gradient is not None and old is not None and old() is gradient:
            if version(gradient) == number:
                return False
        return not self._seen_all or id(parameter) in self._filled

    def was_filled(self, parameter: Tensor) -> bool:
        """Whether some backward was seen to fill its `.grad`."""
        return id(parameter) in self._filled

    def filled_here(self, parameter: Tensor) -> int:
        """The first backward of this cell that is known to have done so, 0 for none."""
        known = self._filled.get(id(parameter))
        return 0 if known is None or known.here <= self.since else known.here

    def are_filled_together(self, parameter: Tensor, others: Iterable[Tensor]) -> bool:
        """Whether the newest one filled any of these, too; so, as far as is known, where the graph
        was too large to be walked."""
        known = self._filled.get(id(parameter))
        if known is None:
            return not self._seen_all
        return any(id(p) in known.beside and id(p) in self._filled for p in others)

    def filled_since(self, parameter: Tensor) -> int:
        """When the first watched backward did."""
        known = self._filled.get(id(parameter))
        return self._first if known is None else known.clock

    def used_behind(self, leaf: Tensor, held: Iterable[int]) -> bool:
        """Whether the forward pass used a leaf after all of these that the same backward filled."""
        known = self._filled.get(id(leaf))
        if known is None:
            return False
        others = (self._filled[key] for key in held if key in self._filled)
        ranks = [other.rank for other in others if other.clock == known.clock]
        return bool(ranks) and known.rank < min(ranks)

    def after_backward(self) -> None:
        self.stale.after_backward()
        others = (f.leaf() for key, f in self._filled.items() if key not in self.held)
        self.by_hand.after_backward(leaf for leaf in others if leaf is not None)
        for followed in self.followed.values():
            optimizer = followed.optimizer()
            first = None if optimizer is None else next(_parameters(optimizer), None)
            gradient = None if first is None else first.grad
            if gradient is None or self._backward is None:
                self._settled.clear()  # perhaps another model's by now: look again
                continue
            followed.filled = self._backward
            seen = id(gradient), version(gradient)
            if seen != followed.seen and len(followed.fills) < _MAX_FILLS:
                followed.fills.append(self._backward)
            followed.seen = seen

    def zeroed(self, optimizer: Any, mark: Mark) -> None:
        """About to be cleared by an optimizer; None: already cleared, by something else."""
        if optimizer is None:
            self._cleared = mark
            for followed in self.followed.values():
                followed.cleared, followed.cleared_at = True, mark.clock
            return
        followed = self.cleared_by(optimizer)
        fresh = self._fresh_gradient(followed, optimizer)
        self._changed_too_late(followed, optimizer, mark)
        followed.cleared = followed.ever_cleared = True
        followed.cleared_at = mark.clock
        if fresh:
            followed.zeroed = mark
            if self._backward is not None and self.was_read < self._backward.clock:
                followed.spilt.append((self._backward.site, mark))

    def clipped(self, leaf: Tensor, there: bool, mark: Mark) -> None:
        """The gradient of a leaf was asked for to be clipped; `there`: it has one."""
        if there:
            self._not_clipped.pop(id(leaf), None)
        elif id(leaf) in self.held:
            self._not_clipped[id(leaf)] = mark

    def given(self, optimizer: Optimizer) -> None:
        """An optimizer got parameters: those of its constructor, or a group more."""
        self.follow(optimizer).given = self.log.tick()

    def before_step(self, optimizer: Optimizer, parameters: list[Tensor], mark: Mark) -> None:
        followed = self.follow(optimizer)
        self._stepping = mark.clock
        self.zeros.before_step(parameters)
        self._thrown_away(followed, parameters, mark)
        self._spilt(followed, mark)
        self._left_over(followed, parameters, mark)
        self._left_by_others(followed, parameters, mark)
        self._changed_too_early(followed, parameters, mark)
        self._deserted(followed, parameters, mark)
        if _first_gradient(parameters) is not None:
            followed.fed = mark.clock
        self._lacking(followed, parameters, mark)

    def after_step(self, optimizer: Optimizer, parameters: list[Tensor], mark: Mark) -> None:
        followed = self.follow(optimizer)
        if not followed.steps:
            self.by_hand.stepped(parameters)
            self._hold(parameters)
            followed.first = weak(parameters[0]) if parameters else None
        if not followed.all_had:  # a closure goes backward during the step
            without = [p for weak in followed.without.values() if (p := weak()) is not None]
            followed.with_gradient.update(id(p) for p in without if p.grad is not None)
            if self.last_backward.clock > self._stepping:
                self._blame(followed, [p for p in without if p.grad is None], mark)
        followed.steps += 1
        followed.stepped = self.last_step = mark
        followed.fills.clear()
        self._steps.append((mark.clock, id(optimizer)))
        self.generated = list(self._generated())
        followed.zeroed = None
        followed.cleared = False
        probe = _first_gradient(parameters)
        followed.fed = followed.fed if probe is None else mark.clock
        followed.probe = None if probe is None else weak(probe)
        followed.probe_version = 0 if probe is None else version(probe)

    def cleared_by(self, optimizer: Optimizer) -> Followed:
        """Whose gradients an optimizer clears: where nothing was seen of it but that, it may wrap
        one that steps the same groups (Lightning hands out such)."""
        groups = optimizer.param_groups
        for other in () if id(optimizer) in self.followed else self.followed.values():
            if getattr(other.optimizer(), "param_groups", None) is groups:
                return other
        return self.follow(optimizer)

    def follow(self, optimizer: Optimizer) -> Followed:
        key = id(optimizer)
        known = self.followed.get(key)
        if known is None or known.optimizer() is not optimizer:
            gone = weakref.ref(optimizer, lambda _: self._leave(key))
            known = self.followed[key] = Followed(gone, self.log.clock)
        return known

    def _leave(self, key: int) -> None:
        followed = self.followed.pop(key, None)
        if followed is not None and followed.steps:
            self.past.append(followed)

    def _hold(self, parameters: list[Tensor]) -> None:
        for parameter in parameters:
            key = id(parameter)
            if key not in self.held:
                self.held[key] = Weak(parameter, partial(_release, self.held, key))

    def _fresh_gradient(self, followed: Followed, optimizer: Optimizer) -> bool:
        """Whether a backward has put gradients there since the last step."""
        if self._backward is None or self._backward.clock < followed.stepped.clock:
            return False
        probe = _first_gradient(_parameters(optimizer))
        if probe is None:
            return False
        last = None if followed.probe is None else followed.probe()
        return probe is not last or version(probe) != followed.probe_version

    def _thrown_away(self, followed: Followed, parameters: list[Tensor], mark: Mark) -> None:
        """backward, zero_grad, step, with no backward in between."""
        zeroed, backward = followed.zeroed or self._cleared_after(followed), self._backward
        if zeroed is None or backward is None or backward.clock > zeroed.clock:
            return
        with unseen():
            nothing = all(p.grad is None or is_zero(p.grad) for p in parameters)
        if nothing:
            marks: Marks = {"backward": (backward,), "cleared": (zeroed,), "step": (mark,)}
            evidence = {"optimizer": followed.optimizer}
            self.found.append(CandidateFault("gradients-thrown-away", marks, evidence))

    def _spilt(self, followed: Followed, mark: Mark) -> None:
        """backward, zero_grad, the same backward, step: the step has the last of several."""
        backward = self.last_backward
        same = [cleared for site, cleared in followed.spilt if site == backward.site]
        followed.spills.append(len(same))
        followed.spilt.clear()
        if _is_habit(followed.spills):
            marks: Marks = {"backward": (backward,), "cleared": (same[-1],), "step": (mark,)}
            evidence = {"optimizer": followed.optimizer, "rounds": True}
            self.found.append(CandidateFault("gradients-thrown-away", marks, evidence))
            followed.spills.clear()

    def _changed_too_late(self, followed: Followed, optimizer: Optimizer, mark: Mark) -> None:
        """step, a write to the gradient, zero_grad: nothing used what was written.  Told when the
        same line does so again."""
        backward, gradient = self.last_backward, _first_gradient(_parameters(optimizer))
        if gradient is None or followed.cleared or backward.clock > followed.stepped.clock:
            return
        late = self._writes(gradient, followed.stepped.clock) if followed.steps else []
        if not late:
            return
        with unseen():
            if is_zero(gradient):
                return
        first = Mark(late[-1].site, late[-1].clock, made=False)
        if first.site in followed.too_late:
            marks: Marks = {"backward": (backward,), "step": (followed.stepped,), "late": (first,)}
            marks["cleared"] = (mark,)
            evidence = {"optimizer": followed.optimizer}
            self.found.append(CandidateFault("gradients-changed-too-late", marks, evidence))
        followed.too_late.add(first.site)

    def _changed_too_early(self, followed: Followed, parameters: list[Tensor], mark: Mark) -> None:
        """clip, backward, step: no gradient was there to be clipped.  Told when the same line does
        so again."""
        if not self._not_clipped:
            return
        missed = [self._not_clipped.pop(id(p), _NEVER) for p in parameters if p.grad is not None]
        backward, early = self.last_backward, max(missed, key=_clock, default=_NEVER)
        if not followed.stepped.clock < early.clock < backward.clock:
            return
        if early.site in followed.too_early:
            marks: Marks = {"early": (early,), "backward": (backward,), "step": (mark,)}
            evidence = {"optimizer": followed.optimizer}
            self.found.append(CandidateFault("gradients-changed-too-early", marks, evidence))
        followed.too_early.add(early.site)

    def _cleared_after(self, followed: Followed) -> Mark | None:
        """A clearing by `model.zero_grad()` or by hand, of gradients that this optimizer had."""
        filled, cleared = followed.filled, self._cleared
        if filled is None or cleared is None or filled.clock < followed.stepped.clock:
            return None
        return cleared if cleared.clock > filled.clock else None

    def _left_over(self, followed: Followed, parameters: list[Tensor], mark: Mark) -> None:
        """step, backward, step, and the gradient of the first step is still in the sum."""
        backward = self._backward
        last = None if followed.probe is None else followed.probe()
        if followed.cleared or last is None or backward is None:
            return
        if backward.clock < followed.stepped.clock or last is not _first_gradient(parameters):
            return
        if version(last) == followed.probe_version or self._writes(last, followed.stepped.clock):
            return
        followed.leftovers.append((followed.stepped, mark))
        if len(followed.leftovers) == 2 or not followed.ever_cleared:
            self._report_left_over(followed, backward, mark)

    def _left_by_others(self, followed: Followed, parameters: list[Tensor], mark: Mark) -> None:
        """clear, the backward of another optimizer's turn, its step, the own backward, step."""
        fills = [fill for fill in followed.fills if fill.clock > followed.cleared_at]
        own = self._own_backward(followed, fills) if followed.cleared else None
        if own is None or len({fill.site for fill in fills}) < len(fills):
            return  # what adds up the gradients of several rounds has the same lines again
        left = next(before for before, after in pairwise(fills) if after is own)
        turns = {who for clock, who in self._steps if left.clock < clock < own.clock}
        others = (self.followed[who].optimizer() for who in turns if who in self.followed)
        leaves = [p for o in others if o is not None for p in _parameters(o)]
        if self._others.is_left(left, parameters, leaves):
            marks: Marks = {"backward": (left,), "step": (mark,), "own_backward": (own,)}
            evidence = {"optimizer": followed.optimizer, "others": True}
            self.found.append(CandidateFault("gradients-not-cleared", marks, evidence))

    def _report_left_over(self, followed: Followed, backward: Mark, mark: Mark) -> None:
        first = followed.leftovers[0][0]
        marks: Marks = {"backward": (backward,), "step": (mark,), "earlier_step": (first,)}
        own = self._own_backward(followed, followed.fills)
        if own is not None:
            marks["own_backward"] = (own,)
        evidence = {"optimizer": followed.optimizer, "times": len(followed.leftovers)}
        self.found.append(CandidateFault("gradients-not-cleared", marks, evidence))

    def _own_backward(self, followed: Followed, fills: list[Mark]) -> Mark | None:
        """The first of these backwards for this step, where one for another optimizer's step came
        before it: what that one added is no part of this sum."""
        own = id(followed.optimizer())
        foreign = [clock for clock, who in self._steps if who != own]
        for before, after in pairwise(fills):
            if any(before.clock < clock < after.clock for clock in foreign):
                return after
        return None

    def _writes(self, gradient: Tensor, since: int) -> list[Wrote]:
        """What the program itself wrote to a gradient (clearing or scaling it by hand), the newest
        first."""
        kept = storage(gradient)
        return [wrote for wrote in self.log.writes_after(since - 1) if wrote.storage == kept]

    def _deserted(self, followed: Followed, parameters: list[Tensor], mark: Mark) -> None:
        """A backward has filled new leaves like the parameters, which no optimizer has, and none of
        the parameters.  Told when that comes again; not where a cut, as a copy is, has kept the
        gradients from them all the time."""
        lacking = followed.steps > 0 and all(p.grad is None for p in parameters)
        new = self._new_leaves(followed, parameters) if lacking else []
        if new and followed.fed <= self.since:
            cuts = (self.cuts.above(p, followed.stepped.clock) for p in parameters)
            new = [] if any(map(any, cuts)) else new
        followed.deserted = followed.deserted + 1 if new else 0
        if followed.deserted == _DESERTED:
            made = tuple(Mark(born.site, born.clock) for born in new)
            marks: Marks = {"backward": (self.last_backward,), "step": (mark,), "made": made}
            evidence = {"optimizer": followed.optimizer}
            self.found.append(CandidateFault("optimizer-misses-parameters", marks, evidence))

    def _new_leaves(self, followed: Followed, parameters: list[Tensor]) -> list[Born]:
        shapes = {p.shape for p in parameters}
        recent = (f for f in self._filled.values() if f.clock > followed.stepped.clock)
        leaves = (leaf for f in recent if (leaf := f.leaf()) is not None)
        alike = (p for p in leaves if id(p) not in self.held and p.shape in shapes)
        born = (self.log.birth(address(p), p) for p in alike if p.grad is not None)
        return [b for b in born if b is not None and b.clock > followed.stepped.clock]

    # Parameters without a gradient

    def _lacking(self, followed: Followed, parameters: list[Tensor], mark: Mark) -> None:
        if followed.all_had:
            return
        lacking = [p for p in parameters if p.grad is None and p.requires_grad]
        had = {id(p) for p in parameters if p.grad is not None}
        followed.with_gradient |= had
        if not had:
            followed.frozen = [weak(p) for p in parameters if not p.requires_grad]
        if not lacking:
            followed.all_had = bool(had)
            return
        ids = {id(p) for p in lacking}
        followed.reached |= ids & self._filled.keys()
        for parameter in lacking:
            followed.without.setdefault(id(parameter), weak(parameter))
            followed.shapes.setdefault(id(parameter), str(list(parameter.shape)))
        self._blame(followed, lacking, mark)

    def _blame(self, followed: Followed, lacking: list[Tensor], mark: Mark) -> None:
        """Note the cuts, since the last step, that keep the gradient from these parameters."""
        since = followed.stepped.clock
        own = max((c for c, who in self._steps if who != id(followed.optimizer())), default=since)
        for parameter in lacking:
            for cut in self._guilty(parameter, since, max(own, since)):
                known = followed.cuts.setdefault(cut.site, (mark, set()))
                known[1].add(id(parameter))

    def _guilty(self, parameter: Tensor, since: int, own: int) -> list[CutSite]:
        """Cuts that keep the gradient from a parameter: traced into a loss, if possible one after
        another optimizer's step (`own`): what a loss before that cuts off on purpose, as a
        discriminator's does, is none of this one's; else what a custom Function of the loss has
        read without being given it; else numbers and arrays, whose way is lost once they are
        computed with."""
        found = list(self.cuts.above(parameter, own)) or list(self.cuts.above(parameter, since))
        found = found or list(self.cuts.read_within(parameter, since))
        return found or list(self.cuts.lost_above(parameter, since))

    def never(self, followed: Followed) -> dict[int, Weak]:
        """The parameters that no step found a gradient on."""
        if followed.all_had:
            return {}
        return {k: w for k, w in followed.without.items() if k not in followed.with_gradient}

    def graph_cuts(self) -> list[CandidateFault]:
        """Cuts whose parameters were stepped without a gradient all the time.

        Cuts that keep the gradient from the same parameters (`h.detach().numpy()`) are one finding.
        """
        found = []
        every = (*self.past, *self.followed.values())
        stepped = {i for followed in every for i in followed.with_gradient}
        for followed in every:
            # What a backward did reach was filled, and thrown away before the step; of a graph
            # that is too large to be walked, another optimizer's steps may tell.
            reached = followed.reached | self._filled.keys() | stepped
            never = {k: w for k, w in self.never(followed).items() if k not in reached}
            together: dict[frozenset[int], list[int]] = {}
            for site, (_, ids) in followed.cuts.items():
                lost = frozenset(i for i in ids if i in never)
                if lost:
                    together.setdefault(lost, []).append(site)
            for lost, sites in together.items():
                kept = [i for i in never if i in lost]  # the optimizer's order
                others = {s for each in together.values() for s in each}.difference(sites)
                again = any(not self.cuts.cuts[s].behind.isdisjoint(sites) for s in others)
                suspect = self._cut_suspect(sites, kept, followed)
                evidence = {**suspect.evidence, "cut_again": again}
                found.append(replace(suspect, evidence=evidence))
        return found

    def terms_without_gradient(self, since: int) -> Iterator[CandidateFault]:
        """Terms of a loss that are computed of what is trained, and change no gradient."""
        for cut in self.cuts.choices_added(since):
            leaves = {k: w for k, w in cut.above.items() if k in self.held and w() is not None}
            if leaves and cut.site in self.cuts.reached:
                marks: Marks = {"cut": (Mark(cut.site, cut.clock),)}
                marks["backward"] = (self.cuts.reached[cut.site],)
                way = "term" if cut.way == "operation" else cut.way
                evidence = {"way": way, "parameters": tuple(leaves.values()), "value": cut.function}
                yield CandidateFault("graph-cut", marks, evidence)

    def terms_unused(self, since: int) -> Iterator[CandidateFault]:
        """Terms of a loss whose values left what is trained, and which reach only what another
        optimizer holds, where their gradients are cleared."""
        for found in self.cuts.unused.unused(since):
            left = [self.cuts.cuts[s] for s in found.term.sites if s in self.cuts.cuts]
            cuts = [c for c in left if c.way in ("detach", "data", "no_grad")]
            lost = {k: w for c in cuts for k, w in c.above.items() if k in found.stepped}
            if lost and all(key in self.held for key in found.term.leaves):
                last = max(cuts, key=lambda c: (bool(c.above.keys() & lost.keys()), c.clock))
                marks: Marks = {"cut": (Mark(last.site, last.clock),)}
                marks["backward"] = (found.backward,)
                evidence = {"way": "unused", "parameters": tuple(lost.values())}
                evidence["reached"] = tuple(found.term.leaves.values())
                yield CandidateFault("graph-cut", marks, evidence)

    def _generated(self) -> Iterator[CandidateFault]:
        """Weights that what is trained computes anew in each round, written into leaves: these get
        a gradient, which nobody steps by or reads."""
        for cut in self.cuts.generated(self.since):
            into = [leaf for w in cut.into_leaves.values() if (leaf := w()) is not None]
            trained = {k: w for k, w in cut.above.items() if k in self.held and w() is not None}
            wasted = all(id(p) not in self.held and self.by_hand.is_unread(p) for p in into)
            if into and trained and wasted:
                marks: Marks = {"cut": (Mark(cut.site, cut.clock),)}
                marks["backward"] = (self.cuts.reached[cut.site],)
                shapes = tuple(
                    str(list(p.shape)) for w in trained.values() if (p := w()) is not None
                )
                evidence = {"way": "partial", "parameters": tuple(trained.values())}
                yield CandidateFault("graph-cut", marks, {**evidence, "shapes": shapes})

    def _cut_suspect(self, sites: list[int], lost: list[int], followed: Followed) -> CandidateFault:
        every = [self.cuts.cuts[site] for site in sites]
        cuts = sorted(every, key=lambda c: (c.way in _WITHOUT_A_WORD, c.clock))
        cuts = [c for c in cuts if not _is_further(c, every)]
        # What a custom Function computes inside, its result stands for: that was cut off later.
        cuts = [c for c in cuts if not c.within] or cuts
        cuts = [c for c in cuts if not any(_stops_all(other, c, lost) for other in cuts)] or cuts
        step = followed.cuts[cuts[0].site][0]
        marks: Marks = {"cut": tuple(Mark(c.site, c.clock) for c in cuts), "step": (step,)}
        reached = [self.cuts.reached[s] for s in sites if s in self.cuts.reached]
        within = all(self.cuts.is_within(c) for c in cuts)
        if reached or within:
            marks["backward"] = (reached[0] if reached else self.last_backward,)
        elif self._backward is not None:
            marks["last_backward"] = (self._backward,)
        # Features are computed under no_grad on purpose, and a number may only be printed.
        told = (c for c in cuts if c.way != "no_grad" or c.into or self.cuts.is_term(c))
        further = (c for c in every if _is_further(c, every))
        meant = not any(c.site in self.cuts.reached for c in (*told, *further))
        evidence = {
            "way": "function" if within else cuts[0].way,
            "copied": any(c.leaf for c in cuts),
            "anew": all(c.rounds > 1 for c in cuts),
            "within": cuts[0].within,
            "stack": cuts[0].stack,
            "parameters": tuple(followed.without[i] for i in lost),
            "shapes": tuple(followed.shapes[i] for i in lost),
            "count": len(lost),
            "optimizer": followed.optimizer,
        }
        sure = not meant or within or not followed.with_gradient
        return CandidateFault("graph-cut", marks, evidence, sure)


def _is_habit(counts: list[int]) -> bool:
    """Whether several are left out before every step: one may be, once and again, where a gradient
    is not finite."""
    two, three = counts[-2:], counts[-3:]
    alike = len(two) == 2 and two[0] == two[1] > 1
    return alike or (len(three) == 3 and min(three) > 0)


def _is_further(cut: CutSite, cuts: list[CutSite]) -> bool:
    """Whether what became numbers or an array at a cut had no graph to leave: it was computed
    without recording, at another of these."""
    unrecorded = {c.site for c in cuts if c.way == "no_grad"}
    return cut.way in _FURTHER and not cut.behind.isdisjoint(unrecorded)


def _stops_all(later: CutSite, cut: CutSite, lost: list[int]) -> bool:
    """Whether what left at a cut is stopped once more, with all of the graph of what is lost: the
    cut may stay, as that of a distance by which codes are chosen that are detached then."""
    own = later.way not in _FURTHER and later.above.keys() >= set(lost)
    return own and later is not cut and cut.site in later.behind


def _clock(mark: Mark) -> int:
    return mark.clock


def _parameters(optimizer: Optimizer) -> Iterator[Tensor]:
    """In their order; a group may be empty."""
    return (p for group in optimizer.param_groups for p in group["params"])


def _first_gradient(parameters: Iterable[Tensor]) -> Tensor | None:
    return next((p.grad for p in parameters if p.grad is not None), None)


def _release(kept: dict[int, Any], key: int, _: object) -> None:
    kept.pop(key, None)
