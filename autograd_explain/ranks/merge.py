"""The failures of many ranks as few: one cause at one place is told once, with its ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .failure import Failure


@dataclass(frozen=True)
class Group:
    """What several ranks met in the same way; `best` is the failure that tells most."""

    failures: tuple[Failure, ...]

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(sorted({f.rank for f in self.failures if f.rank is not None}))

    @property
    def best(self) -> Failure:
        return max(self.failures, key=lambda f: (bool(f.cause), f.match is not None, bool(f.place)))


@dataclass(frozen=True)
class Merged:
    """`causes`, first those that autograd explains; `late` only say that another rank failed."""

    causes: tuple[Group, ...]
    late: Group | None = None

    @property
    def explained(self) -> bool:
        """Whether autograd has to do with any of it."""
        return any(group.best.cause or group.best.pattern for group in self.causes)


def merge(failures: Iterable[Failure]) -> Merged:
    """Every failure in one group; what a rank's report and its log both tell counts once."""
    told = _once_for_each_rank(list(failures))
    own = [f for f in told if not f.in_consequence]
    groups = sorted(_groups(own), key=lambda g: not (g.best.cause or g.best.pattern))
    told_of = {rank for group in groups for rank in group.ranks}
    late = tuple(f for f in told if f.in_consequence and f.rank not in told_of)
    return Merged(tuple(groups), Group(late) if late else None)


def _once_for_each_rank(failures: Sequence[Failure]) -> list[Failure]:
    """Without what a better source tells of the same rank."""
    explained = {(f.rank, f.pattern) for f in failures if f.cause}
    raised = {(f.rank, f.message) for f in failures if f.places}
    return [
        f
        for f in failures
        if f.cause
        or (
            (f.rank, f.pattern) not in explained and (f.places or (f.rank, f.message) not in raised)
        )
    ]


def _groups(failures: Sequence[Failure]) -> list[Group]:
    """A rank that was ended before its report was made belongs to those who raised the same
    message at the same line."""
    found: list[list[Failure]] = []
    for failure in sorted(failures, key=lambda f: (not f.cause, f.rank is None, f.rank or 0)):
        for group in found:
            if _are_one(group[0], failure):
                group.append(failure)
                break
        else:
            found.append([failure])
    return [Group(tuple(group)) for group in found]


def _are_one(first: Failure, second: Failure) -> bool:
    if first.cause and second.cause:
        return (first.cause, first.lines) == (second.cause, second.lines)
    same_line = first.line == second.line
    if first.match is None or second.match is None:
        return same_line and (first.kind, first.message) == (second.kind, second.message)
    return same_line and first.pattern == second.pattern
