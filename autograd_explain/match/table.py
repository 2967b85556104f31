"""The message list (messages.json) as compiled wordings, and the index that finds them quickly."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from .wording import Owner, Wording

HERE = Path(__file__).parent


@cache
def rows() -> Mapping[str, Mapping[str, Any]]:
    """The message list by id, as written in messages.json."""
    with open(HERE / "messages.json", encoding="utf-8") as file:
        return {row["id"]: row for row in json.load(file)}


@cache
def wordings() -> tuple[Wording, ...]:
    """Every wording of every row; rows with the same text share one."""
    owners: dict[str, list[Owner]] = defaultdict(list)
    templates: dict[str, str] = {}
    for template, owner in _owned(rows().values()):
        key = template_key(template)
        templates.setdefault(key, template)
        if all(known.id != owner.id for known in owners[key]):
            owners[key].append(owner)
    return tuple(
        Wording(template, tuple(sorted(owners[key], key=lambda owner: owner.rank)))
        for key, template in templates.items()
    )


def _owned(table: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Owner]]:
    for row in table:
        about = (row["id"], row["exception"], row["family"], row["likelihood"])
        yield row["message"], Owner(*about)
        for old in row.get("older", ()):
            yield old["message"], Owner(*about, torch=old["torch"])


def template_key(template: str) -> str:
    """Equal for templates that read the same, whatever their holes are called."""
    return " ".join(_unnamed(template).split())


def _unnamed(template: str) -> str:
    from .wording import _HOLE

    return _HOLE.sub("{}", template)


class MessageIndex:
    """Wordings by short literal fragments, the gates: one of them is in every known message."""

    def __init__(self, known: Iterable[Wording], gates: Iterable[str]) -> None:
        self.by_gate: dict[str, list[Wording]] = {gate: [] for gate in gates}
        for wording in known:
            self.by_gate.setdefault(self._gate(wording), []).append(wording)
        self.gates = tuple(self.by_gate)

    def _gate(self, wording: Wording) -> str:
        for gate in self.by_gate:
            if any(gate in literal for literal in wording.literals):
                return gate
        return max(wording.literals, key=len)

    def candidates(self, flat: str) -> list[Wording]:
        """The wordings whose head may be in `flat` (white space collapsed)."""
        return [
            wording
            for gate in self.gates
            if gate in flat
            for wording in self.by_gate[gate]
            if _in_order(wording.literals, flat)
        ]


def _in_order(literals: tuple[str, ...], flat: str) -> bool:
    position = 0
    for literal in literals:
        position = flat.find(literal, position)
        if position < 0:
            return False
        position += len(literal)
    return True


@cache
def built_in() -> MessageIndex:
    with open(HERE / "gates.json", encoding="utf-8") as file:
        return MessageIndex(wordings(), json.load(file))


@cache
def with_extra(extra: tuple[tuple[str, str], ...]) -> MessageIndex:
    """The built-in index and the messages that folders of causes bring themselves."""
    own = (Wording(text, (Owner(id, "", "extra", "common"),)) for id, text in extra)
    return MessageIndex((*wordings(), *own), built_in().gates)
