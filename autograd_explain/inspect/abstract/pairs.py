"""Which stand-in corresponds to which live object, by the names both are reached with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ...incident import Incident
from .match import plain
from .walk import Walk

_PLAIN = (int, float, str, bool, bytes, type(None), type)
_LIMIT = 20_000


def pair(walk: Walk, incident: Incident) -> dict[int, Any]:
    """id of a live tensor -> its stand-in; the namespace first, then the failing frames."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    todo: list[tuple[Any, Any]] = [
        (value, walk.globals[name])
        for name, value in list(incident.namespace.items())
        if name in walk.globals and not name.startswith("_")
    ]
    todo.extend(_frame_pairs(walk, incident))
    todo.extend(walk.adopter.pairs())
    todo.reverse()
    while todo and len(seen) < _LIMIT:
        live, twin = todo.pop()
        if isinstance(live, _PLAIN) or id(live) in seen:
            continue
        seen.add(id(live))
        if isinstance(live, torch.Tensor):
            if isinstance(twin, torch.Tensor) and _alike(live, twin):
                found.setdefault(id(live), twin)
            continue
        todo.extend(_parts(live, twin))
    return found


def _alike(live: torch.Tensor, twin: torch.Tensor) -> bool:
    """Whether a stand-in can be the live tensor's: a walk may have gone another way."""
    if live.shape != twin.shape or live.requires_grad != twin.requires_grad:
        return False
    a, b = live.grad_fn, twin.grad_fn
    if a is None or b is None:
        return a is b
    return plain(a.name()) == plain(b.name())


def _frame_pairs(walk: Walk, incident: Incident) -> Iterable[tuple[Any, Any]]:
    """Locals of the live frames with those of the twin frames, innermost first."""
    if not walk.failure.arrivals:
        return
    live = [f for f in reversed(incident.user_frames) if f.function != "<module>"]
    for frame, (name, values) in zip(live, walk.failure.arrivals[-1].frames, strict=False):
        if frame.function != name:
            return
        for key, value in list(frame.frame.f_locals.items()):
            if key in values:
                yield value, values[key]


def _parts(live: Any, twin: Any) -> list[tuple[Any, Any]]:
    """The parts of two objects that correspond: items, attributes, parameters."""
    if isinstance(live, Mapping) and isinstance(twin, Mapping):
        try:
            return [(v, twin[k]) for k, v in list(live.items())[:500] if k in twin]
        except (TypeError, RuntimeError):
            return []
    if isinstance(live, (list, tuple)) and isinstance(twin, (list, tuple)):
        return list(zip(live[:500], twin, strict=False))
    if isinstance(live, (list, tuple, Mapping)) or type(live).__module__ == "builtins":
        return []
    a, b = getattr(live, "__dict__", None), getattr(twin, "__dict__", None)
    if isinstance(a, dict) and isinstance(b, dict) and type(live).__name__ == type(twin).__name__:
        return [(v, b[k]) for k, v in list(a.items())[:500] if k in b]
    return []
