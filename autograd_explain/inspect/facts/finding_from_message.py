"""A finding from what the message itself says: its captured values and the line it surfaced at.

For causes that the wording of a message settles.  What live objects add, the cause passes in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum

from ...model import Confidence, Event, Finding, Place, TensorFact, What, label
from ..dataflow import ExprAt
from ..scene import Scene

_CLASS = re.compile(r"<class '(?:builtins\.|__main__\.)?([\w.]+)'>")


class At(Enum):
    """For `finding_from_message`: the statement to change is the expression that failed."""

    FAILING = "failing"


def finding_from_message(
    scene: Scene,
    cause: str,
    example: Mapping[str, str],
    variants: Mapping[str, str] | None = None,
    *,
    facts: Mapping[str, str] | None = None,
    at: ExprAt | Place | At | None = At.FAILING,
    more: Sequence[Event] = (),
    tensors: Sequence[TensorFact] = (),
    variant: str | None = None,
    confidence: Confidence | None = None,
) -> Finding[None]:
    """The finding whose facts are named like those of `example`.

    A fact is given in `facts`, or captured by the message, or one of `call` (the expression that
    failed), `line` (the one at which it did) and `place` (where the statement to change stands,
    else the failing one); "" where nothing is known.  `at` is the statement to change; None where
    it is unknown: an error of a backward pass surfaces far from it.  `more` are further events.
    `variants` chooses the variant by the message's id, where `variant` does not.  What the
    rewrites need besides is added by `with_details`.
    """
    at = failing_place(scene) if isinstance(at, At) else at
    blamed = _blamed(scene, at)
    known = {n: _plain(v) for n, v in {**_of_line(scene), **scene.match.captures}.items()}
    known |= {"place": label(blamed.place)} if blamed is not None else {}
    known |= facts or {}
    failed = () if scene.place is None else (scene.failed(),)
    unsure = Confidence.GENERAL if scene.place is None else Confidence.LIKELY
    return Finding(
        cause=cause,
        confidence=unsure if confidence is None else confidence,
        facts={name: str(known.get(name, "")) for name in example},
        tensors=tuple(tensors),
        events=(*(() if blamed is None else (blamed,)), *more, *failed),
        variant=(variants or {}).get(scene.match.pattern, "") if variant is None else variant,
    )


def _blamed(scene: Scene, at: ExprAt | Place | None) -> Event | None:
    """The statement to change; of an expression with the calls that led to it."""
    if isinstance(at, ExprAt):
        return scene.event_at(What.CAUSE, at)
    return None if at is None else Event(What.CAUSE, at)


def _plain(value: str) -> str:
    """On one line; `dict` for `<class 'dict'>`."""
    return _CLASS.sub(r"\1", " ".join(value.split()))


def failing_place(scene: Scene) -> Place | None:
    """The expression that failed in the user's innermost line, else that line."""
    spot = scene.surfaced
    if spot is None:
        return scene.place
    return spot.scope.source.place(spot.node.lineno, spot.function, spot.node)


def _of_line(scene: Scene) -> dict[str, str]:
    spot = scene.surfaced
    call = "" if spot is None else spot.text
    place = scene.place
    if place is None:
        return {"call": call}
    return {"call": call, "place": label(failing_place(scene)), "line": place.source}
