"""Modules that were frozen with a shallow copy of theirs: `copy.copy(net)` has the very layers and
parameters of `net`, and an optimizer is to train these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from ..observe.event_log import EventLog
from ..observe.tensor_facts import address
from .finding import CandidateFault, Mark, Marks, weak
from .frozen_steps import in_vain
from .parameter_owners import live
from .unused_gradients import Followed, Gradients


def frozen_copies(
    namespace: Mapping[str, Any], gradients: Gradients, log: EventLog
) -> Iterator[CandidateFault]:
    """A finding for each optimizer that steps what was frozen so.  Whether it was the copy that was
    frozen, the source tells, and another run whether the original is used, which then trains.
    Where an optimizer holds more that is frozen, it was given all that there is."""
    copied = _copied(namespace) if log.frozen else []
    every = (*gradients.past, *gradients.followed.values()) if copied else ()
    for followed in (f for f in every if f.stepped.clock > gradients.since):
        still = {id(p) for p in _held(followed, gradients) if not p.requires_grad}
        for module in copied:
            parameters = list(module.parameters())
            if still == {*map(id, parameters)} and not still & followed.with_gradient:
                known = [log.frozen_at(address(p), p) for p in parameters]
                frozen = [Mark(f.site, f.clock) for f in known if f is not None]
                if frozen and len(frozen) == len(known):
                    marks: Marks = {"frozen": (max(frozen, key=lambda mark: mark.clock),)}
                    marks["backward"] = (gradients.last_backward,)
                    marks["step"] = (followed.stepped,)
                    shapes = tuple(str(list(p.shape)) for p in parameters)
                    lost = tuple(map(weak, parameters))
                    yield in_vain(followed.optimizer, lost, shapes, marks, shallow=True)


def _held(followed: Followed, gradients: Gradients) -> list[Tensor]:
    """What an optimizer holds; where it is gone, what any of those seen did."""
    if followed.optimizer() is None:
        return [p for held in gradients.held.values() if (p := held()) is not None]
    return followed.holds


def _copied(namespace: Mapping[str, Any]) -> list[nn.Module]:
    """One of each two modules that share what a shallow copy shares, and use it for no gradient."""
    first: dict[int, nn.Module] = {}
    roots = live(namespace, (nn.Module,))
    modules = {id(module): module for root in roots for module in root.modules()}
    tables = ((m, vars(m).get("_modules") or vars(m).get("_parameters")) for m in modules.values())
    shared = [m for m, table in tables if table and first.setdefault(id(table), m) is not m]
    return [m for m in shared if all(p.grad is None for p in m.parameters())]
