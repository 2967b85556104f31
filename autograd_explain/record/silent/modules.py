"""Live modules and optimizers after a cell: who holds which parameter.

Reads plain data only (`vars`, containers): no property, no method of the user's runs.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from ..log import Log
from ..tensors import storage
from .gradients import Followed, Gradients
from .suspect import Marks, Suspect

_MAX_OBJECTS = 5_000
_DEPTH = 3
_OF_MODULE = frozenset(vars(nn.Module()))


def look(namespace: Mapping[str, Any], gradients: Gradients, log: Log) -> list[Suspect]:
    """Layers that no module knows, and parameters that no optimizer steps."""
    if not gradients.last_step.clock:
        return []
    stepped = [f for f in gradients.followed.values() if f.steps]
    found = list(_live(namespace))
    modules = [o for o in found if isinstance(o, nn.Module)]
    optimizers = [o for o in found if isinstance(o, Optimizer)]
    optimizers += [o for f in gradients.followed.values() if (o := f.optimizer()) is not None]
    held = {id(p) for o in optimizers for g in o.param_groups for p in g["params"]}
    held |= {k for k, weak in gradients.held.items() if weak() is not None}
    suspects = list(_plain_lists(modules, held, gradients))
    for followed in stepped:
        suspects += _missed(followed, gradients, modules, held, log)
    return suspects


def _live(namespace: Mapping[str, Any]) -> Iterator[Any]:
    """Modules and optimizers within reach of the user's names."""
    seen: set[int] = set()
    names = [v for k, v in list(namespace.items()) if not k.startswith("_")]
    todo = [(v, 0) for v in names]
    while todo and len(seen) < _MAX_OBJECTS:
        value, depth = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (nn.Module, Optimizer)):
            yield value
        if depth < _DEPTH:
            todo += [(v, depth + 1) for v in _inside(value)]


def _inside(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value[:100])
    if isinstance(value, dict):
        return list(value.values())[:100]
    if isinstance(value, (nn.Module, Optimizer, Tensor, type)) or callable(value):
        return []
    own = getattr(value, "__dict__", None)
    return list(own.values())[:100] if isinstance(own, dict) and _is_users(value) else []


def _is_users(value: Any) -> bool:
    return type(value).__module__ in ("__main__", "builtins") or hasattr(value, "__dict__")


def _plain_lists(
    modules: list[nn.Module], held: set[int], gradients: Gradients
) -> Iterator[Suspect]:
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
                        "parameters": tuple(weakref.ref(p) for p in lost),
                        "count": len(lost),
                        "module": weakref.ref(owner),
                    }
                    # One module in a list, or modules in evaluation mode: perhaps hidden on
                    # purpose, as the network of a perceptual loss is.
                    meant = len(hidden) == 1 or not any(m.training for m in hidden)
                    marks: Marks = {"step": (gradients.last_step,)}
                    yield Suspect("plain-list-of-layers", marks, evidence, not meant)


def _modules_in(value: Any) -> list[nn.Module]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, nn.Module) or not isinstance(value, (list, tuple)):
        return []
    nested = [m for v in value if isinstance(v, (list, tuple, dict)) for m in _modules_in(v)]
    return [*(v for v in value if isinstance(v, nn.Module)), *nested]


def _lost(parameter: Tensor, held: set[int], gradients: Gradients) -> bool:
    """A parameter that got a gradient under watch which no optimizer will use."""
    has = parameter.requires_grad and parameter.grad is not None
    return has and id(parameter) not in held and gradients.may_have_filled(parameter)


def _missed(
    followed: Followed,
    gradients: Gradients,
    modules: list[nn.Module],
    held: set[int],
    log: Log,
) -> Iterator[Suspect]:
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
        "parameters": tuple(weakref.ref(p) for p in missing.values()),
        "count": len(missing),
        "dead": tuple(dead),
        "dead_count": len(dead),
        "optimizer": followed.optimizer,
    }
    # Without parameters stepped in vain it may be a head that is trained alone on purpose.
    marks: Marks = {"step": (followed.stepped,)}
    yield Suspect("optimizer-misses-parameters", marks, evidence, sure=bool(dead))


def _written(parameter: Tensor, log: Log, since: int) -> bool:
    """Whether the program updates the parameter by hand (its initialiser came earlier)."""
    kept = storage(parameter)
    return any(w.storage == kept and w.clock > since for w in log.wrote)
