"""Live modules and optimizers after a cell: who holds which parameter.

Reads plain data only (`vars`, containers): no property, no method of the user's runs.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from ...isolation.type_checks import elements, is_a, items, table_of
from ..observe.event_log import EventLog
from ..observe.tensor_facts import storage
from .finding import CandidateFault, Marks, weak
from .unused_gradients import Followed, Gradients

_MAX_OBJECTS = 5_000
_DEPTH = 3
_OF_MODULE = frozenset(vars(nn.Module()))


def look(namespace: Mapping[str, Any], gradients: Gradients, log: EventLog) -> list[CandidateFault]:
    """Layers that no module knows, and parameters that no optimizer steps."""
    if not gradients.last_step.clock:
        return []
    stepped = [f for f in gradients.followed.values() if f.steps]
    found = list(live(namespace))
    modules = [o for o in found if is_a(o, nn.Module)]
    optimizers = [o for o in found if is_a(o, Optimizer)]
    optimizers += [o for f in gradients.followed.values() if (o := f.optimizer()) is not None]
    held = {id(p) for o in optimizers for g in o.param_groups for p in g["params"]}
    held |= {k for k, weak in gradients.held.items() if weak() is not None}
    suspects = list(_plain_lists(modules, held, gradients))
    for followed in stepped:
        suspects += _missed(followed, gradients, modules, held, log)
    return suspects


def out_of_reach(namespace: Mapping[str, Any], gradients: Gradients, since: int) -> bool:
    """Whether an optimizer that stepped after a time trained what no name of the user's leads to:
    a model that lived in a function."""
    every = (*gradients.past, *gradients.followed.values())
    stepped = [f for f in every if f.stepped.clock > since]
    if not stepped:
        return False
    reachable = list(live(namespace, (nn.Module, Optimizer, Tensor)))
    found = {id(o) for o in reachable}
    found |= {id(p) for o in reachable if isinstance(o, nn.Module) for p in o.parameters()}
    return any(not _in_reach(f, found) for f in stepped)


def _in_reach(followed: Followed, found: set[int]) -> bool:
    first = None if followed.first is None else followed.first()
    return id(followed.optimizer()) in found or (first is not None and id(first) in found)


def live(
    namespace: Mapping[str, Any], kinds: tuple[type, ...] = (nn.Module, Optimizer)
) -> Iterator[Any]:
    """Modules and optimizers within reach of the user's names."""
    seen: set[int] = set()
    names = [v for k, v in list(namespace.items()) if not k.startswith("_")]
    todo = [(v, 0) for v in names]
    while todo and len(seen) < _MAX_OBJECTS:
        value, depth = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if is_a(value, kinds):
            yield value
        if depth < _DEPTH:
            todo += [(v, depth + 1) for v in _inside(value)]


def _inside(value: Any) -> list[Any]:
    if is_a(value, (list, tuple)):
        return elements(value, 100)
    if is_a(value, dict):
        return [v for _, v in items(value)][:100]
    if is_a(value, (nn.Module, Optimizer, Tensor, type)) or callable(value):
        return []
    return list(table_of(value).values())[:100]


def _plain_lists(
    modules: list[nn.Module], held: set[int], gradients: Gradients
) -> Iterator[CandidateFault]:
    """`self.layers = [nn.Linear(…), …]`: used, but not the module's as far as torch knows."""
    for root in modules:
        for owner in root.modules():
            known = {id(m) for m in root.modules()}
            for name, value in list(vars(owner).items()):
                if name in _OF_MODULE:
                    continue
                hidden = [m for m in _modules_in(value) if id(m) not in known]
                lost = [p for m in hidden for p in m.parameters() if _lost(p, held, gradients)]
                if lost:
                    evidence = {
                        "owner": type(owner).__name__,
                        "attribute": name,
                        "layers": len(hidden),
                        "parameters": tuple(weak(p) for p in lost),
                        "count": len(lost),
                        "module": weakref.ref(owner),
                    }
                    # One module in a list, or modules in evaluation mode: perhaps hidden on
                    # purpose, as the network of a perceptual loss is.
                    meant = len(hidden) == 1 or not any(m.training for m in hidden)
                    marks: Marks = {"step": (gradients.last_step,)}
                    yield CandidateFault("plain-list-of-layers", marks, evidence, not meant)


def _modules_in(value: Any) -> list[nn.Module]:
    if is_a(value, dict):
        value = [v for _, v in items(value)]
    if is_a(value, nn.Module) or not is_a(value, (list, tuple)):
        return []
    nested = [m for v in value if is_a(v, (list, tuple, dict)) for m in _modules_in(v)]
    return [*(v for v in value if is_a(v, nn.Module)), *nested]


def _lost(parameter: Tensor, held: set[int], gradients: Gradients) -> bool:
    """A parameter that got a gradient under watch which no optimizer will use."""
    has = parameter.requires_grad and parameter.grad is not None
    return has and id(parameter) not in held and gradients.may_have_filled(parameter)


def _missed(
    followed: Followed,
    gradients: Gradients,
    modules: list[nn.Module],
    held: set[int],
    log: EventLog,
) -> Iterator[CandidateFault]:
    """Parameters with gradients that nobody steps, while the optimizer steps others in vain."""
    missing = {
        id(p): p
        for m in modules
        for p in m.parameters()
        if _lost(p, held, gradients) and not _written(p, log, gradients.first_backward)
    }
    if not missing:
        return
    dead = [w for w in gradients.never(followed).values() if w() is not None]
    evidence = {
        "parameters": tuple(weak(p) for p in missing.values()),
        "count": len(missing),
        "dead": tuple(dead),
        "dead_count": len(dead),
        "optimizer": followed.optimizer,
    }
    # Without parameters stepped in vain it may be a head that is trained alone on purpose.
    marks: Marks = {"step": (followed.stepped,)}
    yield CandidateFault("optimizer-misses-parameters", marks, evidence, sure=bool(dead))


def _written(parameter: Tensor, log: EventLog, since: int) -> bool:
    """Whether the program updates the parameter by hand (its initialiser came earlier)."""
    kept = storage(parameter)
    return any(w.storage == kept and w.clock > since for w in log.wrote)
