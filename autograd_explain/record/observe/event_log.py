"""The log of a recording: numbers only, bounded, nothing alive.

Storages and tensors appear as the addresses of their C++ objects.  An address says something
only while its owner lives; every question asked of the log starts from a live tensor, and looks
at entries made while that tensor was alive.
"""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

from ...isolation.weak_references import Weak

if TYPE_CHECKING:
    import torch

MAX_NODES = 100_000
MAX_WRITES = 50_000
MAX_ALIASES = 20_000
MAX_STEPS = 500
MAX_LANDMARKS = 10_000
_RECENT = 20_000


class Made(NamedTuple):
    """Nodes with sequence numbers in [first, end) were made by a call at `site`."""

    first: int
    end: int
    site: int
    clock: int


class Wrote(NamedTuple):
    """A write that the version counter saw.  `own` is false where the counter was an alias's own
    (`.data`): then the tensor's other aliases saw nothing.  `alias` is when the written tensor
    became an alias, 0 where it did not."""

    clock: int
    site: int
    storage: int
    tensor: int
    before: int
    after: int
    own: bool
    alias: int = 0


class Alias(NamedTuple):
    """A tensor became an alias of `of` (its address) on one storage; `parent` is when that one
    became an alias itself, 0 where it did not."""

    clock: int
    site: int
    storage: int
    of: int
    parent: int


class Landmark(NamedTuple):
    """A backward, a step or a zero_grad."""

    clock: int
    site: int
    what: str


class Stepped(NamedTuple):
    """An optimizer's step: its parameters' storages, and versions before and after."""

    clock: int
    site: int
    storages: tuple[int, ...]
    before: array[int]
    after: array[int]


class Born(NamedTuple):
    """A leaf that was made to require a gradient, held weakly."""

    tensor: Weak
    site: int
    clock: int
    switched: bool  #: it was there before, and its flag was off


class Frozen(NamedTuple):
    """A leaf, held weakly, whose flag was switched off, and the last call that did so."""

    tensor: Weak
    site: int
    clock: int


@dataclass
class EventLog:
    """Everything noted, oldest first, in rings: when one is full its oldest entries go.

    The hot path appends plain tuples of integers, which the garbage collector soon leaves alone;
    they are read back as the named tuples above.
    """

    made: deque[tuple[int, int, int, int]] = field(default_factory=lambda: deque(maxlen=MAX_NODES))
    #: The fields of `Wrote` and of `Alias`.
    write_rows: deque[tuple[int, int, int, int, int, int, bool, int]] = field(
        default_factory=lambda: deque(maxlen=MAX_WRITES)
    )
    alias_rows: deque[tuple[int, int, int, int, int]] = field(
        default_factory=lambda: deque(maxlen=MAX_ALIASES)
    )
    stepped: deque[Stepped] = field(default_factory=lambda: deque(maxlen=MAX_STEPS))
    landmarks: deque[Landmark] = field(default_factory=lambda: deque(maxlen=MAX_LANDMARKS))
    living: dict[int, tuple[Weak, int]] = field(default_factory=dict)  #: aliases by identity
    born: dict[int, Born] = field(default_factory=dict)
    frozen: dict[int, Frozen] = field(default_factory=dict)  #: what required a gradient before
    clock: int = 0
    user_code_in_backward: bool = False  #: a hook or a custom Function was seen

    @property
    def wrote(self) -> list[Wrote]:
        """All writes, the oldest first."""
        return [*map(Wrote._make, self.write_rows)]

    @property
    def aliases(self) -> list[Alias]:
        return [*map(Alias._make, self.alias_rows)]

    def writes_after(self, clock: int) -> list[Wrote]:
        """The writes after a time, the newest first."""
        rows = takewhile(lambda row: row[0] > clock, reversed(self.write_rows))
        return [*map(Wrote._make, rows)]

    def leaf(self, where: int, tensor: torch.Tensor, site: int, switched: bool = False) -> None:
        gone = Weak(tensor, lambda _: self.born.pop(where, None))
        self.born[where] = Born(gone, site, self.tick(), switched)

    def birth(self, where: int, tensor: torch.Tensor) -> Born | None:
        """When the tensor at this address was made to require a gradient, as far as seen."""
        born = self.born.get(where)
        return born if born is not None and born.tensor() is tensor else None

    def freeze(self, where: int, tensor: torch.Tensor, site: int, switched: bool) -> None:
        """The flag of a leaf is off now; `switched`: it was on before."""
        if switched or self.frozen_at(where, tensor) is not None:
            gone = Weak(tensor, lambda _: self.frozen.pop(where, None))
            self.frozen[where] = Frozen(gone, site, self.tick())

    def frozen_at(self, where: int, tensor: torch.Tensor) -> Frozen | None:
        """When the tensor at this address was last frozen, as far as seen; perhaps thawed since."""
        frozen = self.frozen.get(where)
        return frozen if frozen is not None and frozen.tensor() is tensor else None

    def alias(
        self,
        made: torch.Tensor,
        of: torch.Tensor,
        storage: int,
        site: int,
        held: Weak | None = None,
    ) -> None:
        """`made`, which `held` refers to, became an alias of `of` on their `storage`."""
        living = self.living
        if len(living) >= MAX_ALIASES:
            living.clear()
        self.clock = clock = self.clock + 1
        known = living.get(id(of))
        parent = known[1] if known is not None and known[0]() is of else 0
        self.alias_rows.append((clock, site, storage, of._cdata, parent))
        living[id(made)] = Weak(made) if held is None else held, clock

    def alias_time(self, tensor: torch.Tensor) -> int:
        """When a tensor became an alias, 0 where it is none."""
        known = self.living.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else 0

    def maker_of(self, number: int) -> Made | None:
        """The call that made a recent node, found from the newest entry backwards."""
        found = None
        for entry in islice(reversed(self.made), _RECENT):
            if entry[0] <= number < entry[1]:
                found = entry  # an outer call, noted later, may hold a narrower one
            elif entry[1] <= number:
                break
        return None if found is None else Made(*found)

    def write_since(self, clock: int, storage: int) -> Wrote | None:
        """The first write to a storage after a time, by an operation or a step.

        `x.data = y` writes none: it gives `x` another one.
        """
        found = None
        for wrote in self.writes_after(clock):
            if wrote.storage == storage and (wrote.own or wrote.before != wrote.after):
                found = wrote
        for step in reversed(self.stepped):
            if step.clock <= clock:
                break
            if storage in step.storages and (found is None or step.clock < found.clock):
                found = Wrote(step.clock, step.site, storage, 0, -1, -1, True)
        return found

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def step(
        self, site: int, storages: tuple[int, ...], before: list[int], after: list[int]
    ) -> None:
        last = self.stepped[-1] if self.stepped else None
        if last is not None and last.storages == storages:
            storages = last.storages  # one tuple for a whole training loop
        clock = self.tick()
        self.stepped.append(Stepped(clock, site, storages, array("q", before), array("q", after)))
        self.landmarks.append(Landmark(clock, site, "step"))

    def landmark(self, site: int, what: str) -> int:
        clock = self.tick()
        self.landmarks.append(Landmark(clock, site, what))
        return clock
