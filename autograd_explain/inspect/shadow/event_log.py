"""What the walk saw: its steps, the graph nodes they made, the storages they wrote."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from ...model import Place
from ..history import TraceEvent
from .site import Site
from .unknown import ReadFloat, ReadInt

#: Where the thread's counter for graph nodes stands (torch >= 2.1).
sequence_number = torch._C._autograd._get_sequence_nr


@dataclass(frozen=True)
class ShadowWrite:
    """A version counter that a step moved; `tensor` is the stand-in that was written.

    `name` is how the statement calls it, "" where it does not.
    """

    step: ShadowEvent
    tensor: torch.Tensor
    before: int
    after: int
    name: str = ""


@dataclass(eq=False)
class ShadowEvent:
    """One operation of the walk at a site, reached through the outer sites `chain`.

    `inside` is the site in a library that the user's call led to, None where there is none.
    `ends_graph` says that something it read required grad and nothing that it made does.

    `loops` are the loops around it, outermost first, each with its iteration number.
    Graph nodes with sequence numbers from `first` to `last` (exclusive) were made inside it.
    """

    order: int
    site: Site
    chain: tuple[Site, ...]
    op: str
    inputs: tuple[Any, ...] = ()
    outputs: tuple[Any, ...] = ()
    first: int = 0
    last: int = 0
    grad_mode: bool = True
    loops: tuple[tuple[Site, int], ...] = ()
    inside: Site | None = None
    ends_graph: bool = False
    writes: list[ShadowWrite] = field(default_factory=list)

    @cached_property
    def moment(self) -> TraceEvent:
        return self.as_moment()

    def as_moment(
        self, version: int | None = None, via: tuple[TraceEvent, ...] = (), target: str = ""
    ) -> TraceEvent:
        return TraceEvent(
            order=self.order,
            place=self.site.place,
            op=self.op,
            chain=tuple(s.place for s in self.chain),
            target=target or self.site.target_text,
            operands=self.site.operand_texts,
            version=version,
            via=via,
            grad_mode=self.grad_mode,
            inside=None if self.inside is None else self.inside.place,
        )

    @property
    def place(self) -> Place:
        return self.site.place

    @property
    def statement(self) -> tuple[Any, ...]:
        """What makes two steps the same statement for the user: the place and the way to it."""
        return self.site.place.line_id, self.op


class ShadowLog:
    """The steps in order, with indices by graph node, by stand-in and by storage."""

    def __init__(self) -> None:
        self.steps: list[ShadowEvent] = []
        self.born: dict[int, ShadowEvent] = {}
        self.writes: list[ShadowWrite] = []
        self._intervals: list[tuple[int, int, ShadowEvent]] = []

    def add(self, step: ShadowEvent) -> None:
        self.steps.append(step)
        self.writes.extend(step.writes)
        given = {id(value) for value in step.inputs}
        for value in step.outputs:
            # Steps keep their outputs alive, so that an id names one value.
            if id(value) not in given:
                self.born.setdefault(id(value), step)

    def __contains__(self, step: ShadowEvent) -> bool:
        return step.order < len(self.steps) and self.steps[step.order] is step

    def birth(self, value: Any) -> ShadowEvent | None:
        """The step that made a stand-in (or an array, or read a number)."""
        if isinstance(value, (ReadFloat, ReadInt)):
            found = value.step
            return found if isinstance(found, ShadowEvent) else None
        return self.born.get(id(value))

    @cached_property
    def _owners(self) -> tuple[list[int], list[ShadowEvent]]:
        """Innermost step by sequence number, as run starts and their owners."""
        owner: dict[int, ShadowEvent] = {}
        for step in self.steps:  # an inner step is logged before the one around it
            for number in range(step.first, step.last):
                owner.setdefault(number, step)
        numbers = sorted(owner)
        return numbers, [owner[n] for n in numbers]

    def owner(self, sequence: int) -> ShadowEvent | None:
        """The innermost step during which the graph node with this number was made."""
        numbers, steps = self._owners
        at = bisect_right(numbers, sequence) - 1
        return steps[at] if at >= 0 and numbers[at] == sequence else None


def tensors_in(values: Iterable[Any], depth: int = 3, limit: int = 256) -> list[torch.Tensor]:
    """The tensors among some values and inside their lists, tuples and dicts."""
    found: list[torch.Tensor] = []
    _gather(values, depth, limit, found)
    return found


def _gather(values: Iterable[Any], depth: int, limit: int, found: list[torch.Tensor]) -> None:
    for value in values:
        if len(found) >= limit:
            return
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif depth and type(value) in (list, tuple):
            _gather(value, depth - 1, limit, found)
        elif depth and isinstance(value, dict):
            _gather(list(value.values()), depth - 1, limit, found)
        elif depth and isinstance(value, tuple):
            _gather(value, depth - 1, limit, found)


def tracked(value: Any) -> tuple[Any, ...]:
    """The values whose origin is followed: tensors, arrays and numbers read from tensors."""
    if isinstance(value, (torch.Tensor, ReadFloat, ReadInt)) or is_array(value):
        return (value,)
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return ()
    found: list[Any] = []
    for part in value[:64]:
        found.extend(tracked(part))
    return tuple(found)


def is_array(value: Any) -> bool:
    kind = type(value)
    return kind.__module__ == "numpy" and kind.__name__ == "ndarray"


def version_of(tensor: torch.Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # inference tensors have no counter
        return 0


def storage_of(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return id(tensor)
