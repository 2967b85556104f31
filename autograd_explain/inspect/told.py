"""A finding from what the message itself says: its captured values and the line it surfaced at.

For causes that the wording of a message settles.  What live objects add, the cause passes in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..model import Certainty, Confidence, Event, Finding, Place, TensorFact, What
from .attribution import label
from .origin import surfaced
from .scene import Scene

_CLASS = re.compile(r"<class '(?:builtins\.|__main__\.)?([\w.]+)'>")


def told(
    scene: Scene,
    cause: str,
    example: Mapping[str, str],
    variants: Mapping[str, str] | None = None,
    *,
    facts: Mapping[str, str] | None = None,
    at: Place | None = None,
    at_line: bool = True,
    tensors: Sequence[TensorFact] = (),
    **changes: Any,
) -> Finding:
    """The finding whose facts are named like those of `example`.

    A fact is given in `facts`, or captured by the message, or one of `call` (the expression that
    failed) and `place` (where it stands); "" where nothing is known.  `at` is the statement to
    change; without it that is the failing expression, unless `at_line` is false: an error of
    a backward pass surfaces far from it.  `variants` chooses the variant by the message's id.
    """
    known = {**_of_line(scene), **scene.match.captures, **(facts or {})}
    if at is None and at_line:
        at = failing_place(scene)
    elif at is not None and "place" not in (facts or {}):
        known["place"] = label(at)
    cause_event = () if at is None else (Event(What.CAUSE, at, certainty=Certainty.INFERRED),)
    values: dict[str, Any] = {
        "cause": cause,
        "confidence": Confidence.GENERAL if scene.place is None else Confidence.LIKELY,
        "facts": {name: _plain(str(known.get(name, ""))) for name in example},
        "tensors": tuple(tensors),
        "events": (*cause_event, *((scene.failed(),) if scene.place is not None else ())),
        "variant": (variants or {}).get(scene.match.pattern, ""),
    }
    return Finding(**{**values, **changes})


def _plain(value: str) -> str:
    """On one line; `dict` for `<class 'dict'>`."""
    return _CLASS.sub(r"\1", " ".join(value.split()))


def failing_place(scene: Scene) -> Place | None:
    """The expression that failed in the user's innermost line, else that line."""
    spot = surfaced(scene)
    if spot is None:
        return scene.place
    return spot.scope.source.place(spot.node.lineno, spot.function, spot.node)


def _of_line(scene: Scene) -> dict[str, str]:
    spot = surfaced(scene)
    call = "" if spot is None else spot.text
    return {"call": call, "place": "" if scene.place is None else label(failing_place(scene))}
