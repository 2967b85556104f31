"""Which stand-in corresponds to which live object, by the names both are reached with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ...incident import Incident
from ...isolation.type_checks import elements, is_a, items, table_of
from .graph_alignment import plain
from .run import ShadowRun

_PLAIN = (int, float, str, bool, bytes, type(None), type)
_LIMIT = 20_000
_ITEMS = 500
_KEYS = (str, int, bool, float, type(None))


def pair(walk: ShadowRun, incident: Incident) -> dict[int, Any]:
    """id of a live tensor -> its stand-in; the namespace first, then the failing frames.

    What the walk shares with the program (modules of a library: torch alone would use up the limit)
    holds no stand-ins.
    """
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
        if live is twin or is_a(live, _PLAIN) or id(live) in seen:
            continue
        seen.add(id(live))
        if is_a(live, torch.Tensor):
            if is_a(twin, torch.Tensor) and _alike(live, twin):
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


def _frame_pairs(walk: ShadowRun, incident: Incident) -> Iterable[tuple[Any, Any]]:
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
    if is_a(live, dict) and is_a(twin, dict):
        return _under_same_keys(live, twin)
    if is_a(live, (list, tuple)) and is_a(twin, (list, tuple)):
        return list(zip(elements(live, _ITEMS), elements(twin, _ITEMS), strict=False))
    if is_a(live, (list, tuple, dict)) or type(live).__name__ != type(twin).__name__:
        return []
    return _under_same_keys(table_of(live), table_of(twin))


def _under_same_keys(live: dict[Any, Any], twin: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """Keys of the user's own classes would be compared by their `__eq__`."""
    found = {k: v for k, v in items(twin) if type(k) in _KEYS}
    return [(v, found[k]) for k, v in list(items(live))[:_ITEMS] if type(k) in _KEYS and k in found]
