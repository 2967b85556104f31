"""Where values leave the graph, and whether what left came back into a loss.

A result that lost its graph is traced, by identity, through the operations it goes into.  A cut
is only a suspect when its trace reaches the root of a backward and a parameter above the cut,
held by an optimizer, never gets a gradient: detaching on purpose looks the same up to there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor
from torch._C._autograd import _get_sequence_nr as sequence
from torch.nn import Parameter

from ...custom_function import forward_frames
from ...isolation.type_checks import class_attribute
from ...live_definitions import code_of
from ...nodes import GraphTraversal, is_view
from ...program import is_of_package
from ..observe.tensor_facts import modes, quiet, requiring_grad, root, storage, tensors_in
from .equal_sides import is_nothing_beside
from .finding import Mark, Weak, weak
from .unused_terms import UnusedTerms
from .values import MAX_VALUES, Values

_MAX_TRACES = 10_000
_MAX_WALK = 2_000
_LOOKS = 2  #: how often one site's graph is walked for leaves above it and none is new
_MOST_FRAMES = 200
_MOST_ABOVE = 1_000  #: leaves that are noted of one site
_ROUNDS = 2
_NOTHING: frozenset[int] = frozenset()
#: The tensor, the cuts that it comes from, and those of them that were only added.
_Trace = tuple[Weak, frozenset[int], frozenset[int]]
_SUMS = ("AddBackward0", "SubBackward0", "StackBackward0")


@dataclass
class CutSite:
    """A site at which values leave the graph, how, and the leaves above it, held weakly.

    `way` is detach, data, written (through `.data`), copy, number, numpy, no_grad, operation or
    derivative (torch.autograd.grad without create_graph) or graphless (with it, through a custom
    `function` of a package's);
    `memory` the storage of the last result, `source` what it was before, by identity; `behind` the
    cuts that what leaves here came from.
    """

    site: int
    clock: int
    way: str
    memory: int = 0
    source: int = 0
    looks: int = 0
    above: dict[int, Weak] = field(default_factory=dict)
    behind: frozenset[int] = _NOTHING
    fresh: int = 0  #: when a value last left that was computed after the backward before
    leaf: bool = False  #: what left became a leaf, as the first value of what is trained does too
    rounds: int = 0  #: of this cell, in which it did
    #: Of what ran in the `forward` of a custom Function: the code down from there, innermost first.
    within: tuple[CodeType, ...] = ()
    #: Of what first ran without recording: what ran, innermost first, with the instructions.
    stack: tuple[tuple[CodeType, int], ...] = ()
    added: int = 0  #: when a loss last had what left in the round as a term without a graph
    wide: bool = False  #: what it was added to is no number: perhaps what it was computed of
    into: bool = False  #: without recording, it was written into a result that has a graph
    derivative: int | None = None  #: the site that gave what left, and recorded how
    computed: bool = False  #: what left in a round, of leaves
    timely: bool = False  #: so did what left last
    into_leaves: dict[int, Weak] = field(default_factory=dict)  #: that got all of it
    function: str = ""
    own: frozenset[int] = field(init=False)  #: its site alone

    def __post_init__(self) -> None:
        self.own = frozenset({self.site})


class Cuts:
    """All cuts by site; `traces` says which live tensors come from which cuts, and to which of
    them these were only added: the gradient of nothing depends on them.

    `idle` are the sites at which values were detached that had no graph.
    """

    def __init__(self) -> None:
        self.cuts: dict[int, CutSite] = {}
        self.traces: dict[int, _Trace] = {}
        self.idle: set[int] = set()
        self.applied: set[CodeType] = (
            set()
        )  #: the `forward` of each custom Function in a loss's graph
        self.terms: set[frozenset[int]] = set()  #: of each number without a graph that was added
        #: Of what was subtracted, the leaves above it that are not above what it was taken from.
        self._apart: dict[int, Set[int]] = {}
        #: On each device: whether a sum of this cell had what left as what balances all the rest.
        self._balanced: dict[tuple[int, torch.device], Tensor] = {}
        self.unused = UnusedTerms()
        self.reached: dict[int, Mark] = {}  #: cut site -> the last backward it flowed into
        self.values = Values()
        self._derived: dict[int, tuple[Weak, int]] = {}  #: derivatives, with their sites
        self._since = 0
        self._begun = 0  #: when the cell did
        self._previous = 0  #: the time of the last backward
        #: Of each cut, how many backwards of this cell came before it first ran, and the seconds.
        self.first: dict[int, tuple[int, float]] = {}
        self.rounds = 0  #: backwards of this cell
        self._started = time.perf_counter()

    def cut(
        self,
        source: Tensor,
        result: Any,
        mark: Mark,
        way: str,
        memory: int = 0,
        held: Weak | None = None,
    ) -> None:
        """`result`, a tensor, a number or a list, is what `source` became outside the graph;
        `memory` its storage, where it is known, and `held` what forgets its trace."""
        cut = self.cuts.get(mark[0])
        if cut is None:
            cut = self._at(mark, way)
        cut.clock = mark[1]
        if cut.looks < _LOOKS:
            self._look_above(cut, (source,))
        cut.timely = cut.computed and self._is_fresh(source, way)
        known = self.traces.get(id(source))
        sites = cut.own
        if known is not None and known[1]:
            cut.behind |= known[1]
            sites |= known[1]
        if type(result) is Tensor or isinstance(result, Tensor):
            cut.memory, cut.source = memory or storage(result), id(source)
            # `detach_` is told before it runs; a leaf may get other values under no_grad.
            alone = result is source or not result.requires_grad
            self._trace(result, sites, sites if alone else _NOTHING, held)
        elif source.numel() <= MAX_VALUES:
            self.values.remember(result, sites)

    def parameter(self, source: Tensor, result: Tensor, mark: Mark) -> None:
        """`result`, a parameter, was made of `source`, and so much of what has left before went
        no further: the leaves below that are among those that are lost here."""
        self.cut(source, result, mark, "copy")
        cut = self.cuts[mark.site]
        cut.leaf |= result.requires_grad  # as a frozen one it is no first value
        if (known := self.traces.get(id(result))) is not None:
            over = {s for s in known[1] - cut.own if self.cuts[s].above.keys() <= cut.above.keys()}
            self.traces[id(result)] = known[0], known[1] - over, known[2] - over

    def handed_on(self, source: Tensor, result: Tensor) -> None:
        """`result`, a leaf, has the values of `source`."""
        found = self._of(source)
        for site in found:
            self.cuts[site].leaf = True
        if found:
            self._trace(result, found, _NOTHING)

    def derivatives(self, roots: tuple[Tensor, ...], mark: Mark) -> None:
        """Derivatives of `roots` have no graph.  They are not traced: as a step to take (an
        adversarial example, a sample, a first-order update) they are meant so."""
        cut = self._at(mark, "derivative")
        if cut.looks < _LOOKS:
            self._look_above(cut, roots)

    def derived(self, roots: Sequence[Tensor], results: Sequence[Tensor], mark: Mark) -> None:
        """torch.autograd.grad gave these of `roots`, with a graph of their own, as it was asked
        for; with none where the `backward` of a package's custom Function has recorded nothing."""
        for tensor in results:
            self._derived[id(tensor)] = Weak(tensor, partial(self._forget, id(tensor))), mark.site
        function = "" if requiring_grad(results) else _of_package(roots)
        if function and results:
            cut = self._at(mark, "graphless")
            cut.function = function
            self._look_above(cut, roots)
            for tensor in results:
                self._trace(tensor, cut.own, cut.own)

    def _forget(self, key: int, _: object) -> None:
        self._derived.pop(key, None)

    def written(self, target: Tensor, sources: Iterable[Tensor], mark: Mark, way: str) -> None:
        """The values of `sources` were written into `target`, whose graph does not know it."""
        for source in sources:
            if source.requires_grad and root(source) is not root(target):
                self.cut(source, target, mark, way)
                self.cuts[mark.site].leaf |= target.requires_grad and target.is_leaf
                self._into_leaf(self.cuts[mark.site], source, target)

    def handed_to(self, target: Tensor, given: Iterable[Tensor]) -> None:
        """`target` gets the memory of something, perhaps of a result's `.data`."""
        for value in given:
            for site in self._of(value):
                if self.cuts[site].way == "data":
                    self._into_leaf(self.cuts[site], value, target)

    def _into_leaf(self, cut: CutSite, source: Tensor, target: Tensor) -> None:
        """Where a leaf is written with all that it is to be in a round, that is noted."""
        is_leaf = target.requires_grad and target.is_leaf
        whole = source.numel() == target.numel() and len(cut.into_leaves) < _MOST_ABOVE
        if is_leaf and whole and cut.timely:
            cut.into_leaves[id(target)] = weak(target)
        else:
            cut.into_leaves.pop(id(target), None)

    def _look_above(self, cut: CutSite, sources: Sequence[Tensor]) -> None:
        """Note the leaves above what one call took out of the graph, at the first calls, and as
        long as the calls before have shown new ones: a loop goes through the blocks of a model."""
        known = len(cut.above)
        if cut.site not in self.first:
            self.first[cut.site] = self.rounds, time.perf_counter() - self._started
        if any(self._is_fresh(source, cut.way) for source in sources):
            cut.fresh = cut.clock
            cut.computed = cut.computed or any(map(_is_computed, sources))
        for source in sources:
            if id(source) in self._derived:
                cut.derivative = self._derived[id(source)][1]
            for leaf in leaves_above(source):
                cut.above[id(leaf)] = weak(leaf)
        cut.looks += not known < len(cut.above) <= _MOST_ABOVE

    def _is_fresh(self, source: Tensor, way: str) -> bool:
        """Whether it was computed after the last backward; the number of a leaf is at any time."""
        node = root(source).grad_fn
        return way == "number" if node is None else node._sequence_nr() >= self._since

    def ended(self, args: tuple[Any, ...], result: Any, mark: Mark) -> None:
        """An operation made no node although an argument required a gradient.

        Unless it handed that argument on, as torch.broadcast_tensors does where shapes agree.
        """
        if type(result) is Tensor:
            outside: tuple[Tensor, ...] = (result,)
            ends = not result.requires_grad
        else:
            outside = tuple(tensors_in((result,)))
            ends = bool(outside) and not requiring_grad(outside)
        if not ends:
            return
        sources = requiring_grad(args)
        cut = self.cuts.get(mark[0])
        if cut is None:
            cut = self._at(mark, _way(sources[0], outside[0]))
            cut.within = _code_within_function()
            cut.stack = _running() if cut.way == "no_grad" else ()
        self._left_by_operation(sources, outside, cut, mark)

    def beside(self, args: tuple[Any, ...], results: tuple[Any, ...], mark: Mark) -> None:
        """Of the results of an operation that made nodes, some have no derivative: indices."""
        sources = requiring_grad(args)
        outside = tuple(out for out in tensors_in(results) if not out.requires_grad)
        if sources:
            self._left_by_operation(sources, outside, self._at(mark, "operation"), mark)

    def _left_by_operation(
        self, sources: Sequence[Tensor], outside: tuple[Tensor, ...], cut: CutSite, mark: Mark
    ) -> None:
        cut.clock = mark[1]
        if cut.looks < _LOOKS:
            self._look_above(cut, sources)
        behind = [self._of(source) for source in sources] if self.traces else []
        sites = cut.own.union(*behind) if behind else cut.own
        cut.behind = cut.behind.union(*behind)
        for out in outside:
            cut.memory, cut.source = storage(out), id(sources[-1])
            self._trace(out, sites, sites)

    def to_numpy(self, tensor: Tensor, mark: Mark) -> None:
        """A detached tensor goes to numpy: a cut of its own, below the same leaves."""
        if found := self._further(tensor, mark, "numpy"):
            self.values.remember(tensor, found)

    def to_number(self, tensor: Tensor, result: Any, mark: Mark) -> None:
        """As `to_numpy`: what has no graph any more becomes a Python number."""
        if (found := self._further(tensor, mark, "number")) and tensor.numel() <= MAX_VALUES:
            self.values.remember(result, found)

    def _further(self, tensor: Tensor, mark: Mark, way: str) -> frozenset[int]:
        found = self._of(tensor)
        if not found:
            return _NOTHING
        cut = self._at(mark, way)
        for site in found:
            cut.above.update(self.cuts[site].above)
            cut.fresh = max(cut.fresh, self.cuts[site].fresh)
        cut.behind |= found - {mark.site}
        return found | {mark.site}

    def appeared(self, tensor: Tensor, given: Any = None) -> None:
        """A tensor that may have been made from Python numbers or on numpy memory: are its values
        known?"""
        if id(tensor) in self.traces:
            return
        leaf = tensor.requires_grad
        found = self._of_leaf(tensor) if leaf else self.values.recall(tensor, given)
        for site in found if leaf else ():
            self.cuts[site].leaf = True
        if found:
            self._trace(tensor, found, _NOTHING if leaf else found)

    def spread(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> bool:
        """What comes from a traced argument is traced.  Whether there was one."""
        known_of = self.traces.get
        given: list[_Trace] = []
        for value in args:
            known = known_of(id(value))  # only what lives is there
            if known is not None:
                given.append(known)
            elif type(value) is not Tensor and issubclass(type(value), (list, tuple)):
                given += [known for item in value if (known := known_of(id(item))) is not None]
        for value in kwargs.values() if kwargs else ():
            if (known := known_of(id(value))) is not None:
                given.append(known)
        if given:
            self._hand_on(given, result)
            if args and result is args[0]:
                self._written_through(result)
                if not torch.is_grad_enabled():
                    self._written_into(args)
        return bool(given)

    def _hand_on(self, given: list[_Trace], result: Any) -> None:
        """`result` was computed from tensors with these traces, or is what was written."""
        first = given[0]
        if len(given) == 1 and first[1] is first[2] and self.traces.get(id(result)) is first:
            return  # it got nothing new, as in `w.data -= g`
        found = first[1]
        for _, sites, _ in given:
            if sites is not found:
                found |= sites
        if type(result) is Tensor and not modes() and not result.requires_grad:
            self._trace(result, found, found)
            return
        with quiet():
            for out in tensors_in((result,)):
                added = self._added(given, found, out)
                self._trace(out, found, added)
                if added and out.requires_grad and out.dim():
                    for site in added:
                        self.cuts[site].wide = True
                if out.requires_grad and not out.dim():
                    self.unused.computed(((gone(), sites) for gone, sites, _ in given), out)

    def _added(self, given: list[_Trace], found: frozenset[int], out: Tensor) -> frozenset[int]:
        """The cuts to which the result of these is only added, or has no graph itself."""
        if not out.requires_grad:
            return found
        terms = [trace for trace in given if trace[2]]
        if not terms:
            return _NOTHING
        sums = _is_sum(out)
        known = [(t, added) for gone, _, added in terms if (t := gone()) is not None]
        if sums and not out.dim():
            stopped = [added for t, added in known if not t.requires_grad]
            self.terms.update(stopped)
            for t, added in known:
                self._look_beside(out, t, added)
            if stopped:
                self._look_apart(_NOTHING.union(*stopped), out)
        return _NOTHING.union(*(added for t, added in known if sums or t.requires_grad))

    def _look_beside(self, out: Tensor, term: Tensor, added: frozenset[int]) -> None:
        """Note whether a term is what the same weights gave: its gradient would take all away."""
        says = is_nothing_beside(out, term)
        if says is not None:
            for key in ((site, out.device) for site in added):
                self._balanced[key] = says | self._balanced.get(key, says)

    def _look_apart(self, subtracted: frozenset[int], out: Tensor) -> None:
        """Note of what was taken from something the leaves that this knows nothing of."""
        node = root(out).grad_fn
        if node is not None and node.name() == "SubBackward0" and node.next_functions[1][0] is None:
            known = {id(leaf) for leaf in leaves_above(out)}
            self._apart.update((s, self.cuts[s].above.keys() - known) for s in subtracted)

    def _written_through(self, view: Any) -> None:
        """What was written into a view is in what it is a view of: `out.narrow(0, i, 1).copy_(x)`.
        Where a graph is recorded, it is that of the base, too."""
        known, base = self.traces.get(id(view)), view._base if type(view) is Tensor else None
        if known is not None and base is not None and not base.requires_grad:
            self._trace(base, known[1], known[2])

    def _written_into(self, args: tuple[Any, ...]) -> None:
        """An operation in place while nothing is recorded.  A leaf is meant to be changed so; a
        view that is asked may rebuild its history, or raise."""
        target = args[0]
        plain = type(target) is Tensor and target._base is None
        if plain and target.requires_grad and not target.is_leaf:
            for value in args[1:]:
                for site in self._of(value):
                    self.cuts[site].into = True

    def before_backward(self, roots: tuple[Tensor, ...], mark: Mark) -> None:
        for tensor in roots if self.cuts else ():
            known = self.traces.get(id(tensor))
            for site in _NOTHING if known is None else known[2]:
                if self.cuts[site].clock > self._previous and not self._is_apart(site, tensor):
                    self.cuts[site].added = mark.clock
            for site in self._of(tensor) or self._of_leaf(tensor):
                if self._is_made_anew(self.cuts[site]):
                    self.reached[site] = mark
        self.unused.before_backward(roots, mark)
        self._since = sequence()
        self._previous = mark.clock
        self.rounds += 1

    def _is_apart(self, site: int, loss: Tensor) -> bool:
        """Whether what was subtracted is a baseline: it comes from weights that what it was taken
        from knows nothing of, and that other terms of the loss train."""
        own = self._apart.pop(site, None)
        return own is not None and bool(own) and own <= {id(leaf) for leaf in leaves_above(loss)}

    def _is_made_anew(self, cut: CutSite) -> bool:
        """Whether what left does so for each backward: a leaf that stays was only given its first
        value there, and by the first backward nothing tells which it is."""
        cut.rounds += cut.clock > self._previous
        return not cut.leaf or cut.rounds >= _ROUNDS

    def begin(self, clock: int) -> None:
        """A cell begins: each site is looked at once more."""
        self._begun = clock
        self.first.clear()
        self.terms.clear()
        self._balanced.clear()
        self.rounds, self._started = 0, time.perf_counter()
        for cut in self.cuts.values():
            cut.looks = min(cut.looks, _LOOKS - 1)
            cut.rounds = 0

    def fresh(self, since: int) -> list[CutSite]:
        """Where numbers and arrays left after a time in the round of a backward, written without
        the word detach."""
        ways = ("number", "numpy", "copy", "data", "derivative")
        return [c for c in self.cuts.values() if c.way in ways and c.fresh > since and c.above]

    def generated(self, since: int) -> list[CutSite]:
        """Where each round writes what it has computed into leaves that are no part of it, which
        went into a loss after a time."""
        found = (c for c in self.traced(since) if c.into_leaves and c.rounds >= _ROUNDS)
        ways = ("written", "data")
        return [c for c in found if c.way in ways and not c.above.keys() & c.into_leaves.keys()]

    def traced(self, since: int) -> list[CutSite]:
        """Where tensors left after a time that went into a loss."""
        reached = (site for site, backward in self.reached.items() if backward.clock > since)
        return [cut for site in reached if (cut := self.cuts[site]).above]

    def is_term(self, cut: CutSite) -> bool:
        """Whether a loss has had what left as a term, or in one, that has no graph."""
        return self.is_added(cut, 0) and bool(self.of_terms_with({cut.site}))

    def is_added(self, cut: CutSite, since: int) -> bool:
        """Whether a loss has had it after a time as what is only added, and is not what it takes
        away from.  It may wait for a device: it is for when the cell is over."""
        balanced = (says for (site, _), says in self._balanced.items() if site == cut.site)
        return cut.added > since and not any(map(bool, balanced))

    def of_terms_with(self, sites: set[int]) -> set[int]:
        """All cuts in those terms of a loss without a graph in which there is one of these."""
        return {site for term in self.terms if term & sites for site in term}

    def choices_added(self, since: int) -> list[CutSite]:
        """Operations without a derivative, and derivatives without a graph, that alone lead, after
        a time, to a number that is a term of a loss, in which nothing has a graph; of several in a
        row the last one."""
        added = (c for c in self.cuts.values() if not c.wide and self.is_added(c, since))
        terms = [cut for cut in added if cut.above]
        inner = _NOTHING.union(*(cut.behind for cut in terms))
        last = [cut for cut in terms if cut.site not in inner and not cut.within]
        return [cut for cut in last if cut.way in ("operation", "graphless")]

    def behind(self, tensor: Tensor | None, leaf: Tensor | None = None) -> list[CutSite]:
        """Where the values of a tensor left the graph, or of what any backward went back from, the
        last call first; with `leaf` only those below that."""
        found = [self.cuts[site] for site in (self.reached if tensor is None else self._of(tensor))]
        found = [cut for cut in found if leaf is None or _holds(cut, leaf)]
        found = [cut for cut in found if cut.way != "numpy"] or found  # detached before
        return sorted(found, key=lambda cut: -cut.clock)

    def copied_from(self, leaf: Tensor) -> list[Tensor]:
        """The other leaves that its values came from, as a copy's do."""
        above = {key: w for cut in self.behind(leaf) for key, w in cut.above.items()}
        return [
            source for w in above.values() if (source := w()) is not None and source is not leaf
        ]

    def above(self, parameter: Tensor, since: int) -> Iterator[CutSite]:
        """Cuts below a parameter whose trace reached a backward after a time."""
        for site, backward in self.reached.items():
            cut = self.cuts[site]
            if backward.clock > since and _holds(cut, parameter):
                yield cut

    def applies(self, node: Any) -> None:
        """A node of a loss's graph."""
        function = getattr(type(node), "_forward_cls", None)
        code = None if function is None else code_of(class_attribute(function, "forward"))
        if code is not None:
            self.applied.add(code)

    def read_within(self, parameter: Tensor, since: int) -> Iterator[CutSite]:
        """Where a custom Function that is in a loss's graph has read, after a time, what comes from
        a parameter, though that is none of its inputs."""
        for cut in self.cuts.values():
            if self.is_within(cut) and cut.clock > since and _holds(cut, parameter):
                yield cut

    def is_within(self, cut: CutSite) -> bool:
        """Whether it ran in the `forward` of a custom Function that is in a loss's graph."""
        return not self.applied.isdisjoint(cut.within)

    def lost_above(self, parameter: Tensor, since: int) -> Iterator[CutSite]:
        """Cuts below a parameter that turned into Python numbers or numpy arrays after a time, in
        this cell: what an earlier one has printed or drawn is no part of a loss."""
        since = max(since, self._begun)
        for cut in self.cuts.values():
            if cut.way in ("number", "numpy") and cut.clock > since and _holds(cut, parameter):
                yield cut

    def _at(self, mark: Mark, way: str) -> CutSite:
        cut = self.cuts.get(mark.site)
        if cut is None:
            cut = self.cuts[mark.site] = CutSite(mark.site, mark.clock, way)
        cut.clock = mark.clock
        return cut

    def _of(self, tensor: object) -> frozenset[int]:
        known = self.traces.get(id(tensor))
        return _NOTHING if known is None else known[1]

    def _of_leaf(self, tensor: Tensor) -> frozenset[int]:
        """The cuts whose memory a leaf has: no mode sees `Variable(loss.data)` being made."""
        if tensor._base is not None or tensor.grad_fn is not None:
            return _NOTHING
        kept, own = storage(tensor), id(tensor)
        alike = (c for c in self.cuts.values() if c.memory == kept != 0 and c.source != own)
        return frozenset(cut.site for cut in alike if not _holds(cut, tensor))

    def _trace(
        self,
        tensor: Tensor,
        sites: frozenset[int],
        added: frozenset[int],
        held: Weak | None = None,
    ) -> None:
        key = id(tensor)
        known = self.traces.get(key)
        if known is not None:
            if not (sites <= known[1] and added <= known[2]):
                self.traces[key] = (known[0], known[1] | sites, known[2] | added)
        elif len(self.traces) < _MAX_TRACES:
            if held is None:
                forget = self.traces.pop
                held = Weak(tensor, lambda _: forget(key, None))
            self.traces[key] = (held, sites, added)


def _is_sum(out: Tensor) -> bool:
    """Whether what it was last computed of are its terms.  A difference of many is mostly one from
    a target or a baseline; several numbers in a row are the terms of a loss."""
    node = None if out._base is not None else out.grad_fn
    name = "" if node is None else node.name()
    most = {"SubBackward0": 0, "StackBackward0": 1}.get(name, out.dim())
    return name in _SUMS and out.dim() <= most


def _code_within_function() -> tuple[CodeType, ...]:
    """The code that runs in the `forward` of a custom Function, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    frames, found = forward_frames(frame), []
    while frames is not None and frame is not None and frame is not frames[1]:
        found.append(frame.f_code)
        frame = frame.f_back
    return tuple(found)


def _running() -> tuple[tuple[CodeType, int], ...]:
    found: list[tuple[CodeType, int]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(found) < _MOST_FRAMES:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


def _of_package(roots: Iterable[Tensor]) -> str:
    """The custom Function of a package's, torch's own aside, that these were computed by, if one is
    in their graph."""
    for reached in GraphTraversal([root(tensor).grad_fn for tensor in roots], limit=_MAX_WALK):
        function: Any = getattr(type(reached.node), "_forward_cls", None)
        if isinstance(function, type) and is_of_package(function):
            return function.__name__
    return ""


def _is_computed(source: Tensor) -> bool:
    """Whether its graph does more than put leaves together and take them apart."""
    walk = GraphTraversal([root(source).grad_fn], limit=_MAX_WALK)
    names = (node.node.name() for node in walk)
    return any(name not in _PUT_TOGETHER and not is_view(name) for name in names)


#: The nodes, besides those of views, of what hands on values as they are.
_PUT_TOGETHER = frozenset(
    "torch::autograd::AccumulateGrad CatBackward0 StackBackward0 CloneBackward0 "
    "ToCopyBackward0".split()
)


def _holds(cut: CutSite, parameter: Tensor) -> bool:
    known = cut.above.get(id(parameter))
    return known is not None and known() is parameter


def _way(source: Tensor, result: Tensor) -> str:
    """How an operation took its result out of the graph."""
    if _same_memory(source, result):
        return "detach"
    return "operation" if torch.is_grad_enabled() else "no_grad"


def _same_memory(a: Tensor, b: Tensor) -> bool:
    kept = storage(a)
    return kept != 0 and kept == storage(b)


def leaves_above(tensor: Tensor) -> Iterator[Tensor]:
    """The leaves whose gradient a tensor would carry.  For a view its base is asked: reading the
    `grad_fn` of a view may rebuild its history."""
    if isinstance(tensor, Parameter):
        yield tensor
        return
    base = root(tensor)
    start = base.grad_fn
    if start is None:
        if base.requires_grad:
            yield base
        return
    seen: set[Any] = set()
    todo: list[Any] = [start]
    while todo and len(seen) < _MAX_WALK:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, Tensor):
            yield leaf
        todo.extend(fn for fn, _ in node.next_functions)
