"""The version counter's story as a few stops: saved, overwritten, needed."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import Event, Finding, Role, What
from .labels import word
from .places import numbered

MOST = 4  #: stops that fit beside each other; of many writes the first and the last are shown


@dataclass(frozen=True)
class Stop:
    """A point of the timeline: `tone` as in a Row, `version` "1" or "?"."""

    tone: str
    version: str
    caption: str
    where: str


def stops_of(finding: Finding, language: str) -> tuple[Stop, ...]:
    """The stops in time; () where the cause is not about versions."""
    culprit = finding.tensor(Role.CULPRIT)
    if culprit is None or culprit.saved_version is None or culprit.current_version is None:
        return ()
    saved = Stop(
        "saved",
        str(culprit.saved_version),
        word("stop_saved", language),
        _where(finding.event(What.SAVED)),
    )
    writes = _by_version([e for e in finding.events if e.what is What.CHANGED])
    last = str(culprit.current_version)
    # Two events of one line and version are one write: a view and its base share the counter.
    versions = [*("?" for _ in writes[1:]), last]  # after each, where it was not counted
    pairs = zip(writes, versions, strict=False)
    changed = list(dict.fromkeys(_write(e, v, language) for e, v in pairs)) or [
        Stop("guilty", last, word("stop_changed", language), "?")
    ]
    if len(changed) > MOST - 2:
        changed = [changed[0], changed[-1]]
    same = culprit.saved_version == culprit.current_version
    needed = Stop(
        "needed",
        last if same else f"{last} ≠ {culprit.saved_version}",
        word("stop_needed", language),
        _where(finding.event(What.FAILED)),
    )
    return (saved, *changed, needed)


def _by_version(writes: list[Event]) -> list[Event]:
    if any(e.version is None for e in writes):
        return writes
    return sorted(writes, key=lambda e: e.version or 0)


def _write(event: Event, uncounted: str, language: str) -> Stop:
    version = uncounted if event.version is None else str(event.version)
    return Stop("guilty", version, word("stop_changed", language), _where(event))


def _where(event: Event | None) -> str:
    if event is None or event.place is None:
        return ""
    return numbered(event.place)
