"""DistributedDataParallel models of a failure, and the parameters a message counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from ...model import Place
from ..scene import Scene

if TYPE_CHECKING:
    from torch.nn.parallel import DistributedDataParallel


def wrapped_models(scene: Scene) -> tuple[DistributedDataParallel, ...]:
    """The models in the failing frames, innermost first, then those of the user's names."""
    if not torch.distributed.is_available():
        return ()
    from torch.nn.parallel import DistributedDataParallel

    values = (v for v in _values(scene) if isinstance(v, DistributedDataParallel))
    return tuple({id(v): v for v in values}.values())


def _values(scene: Scene) -> Iterator[Any]:
    for live in reversed(scene.incident.frames):
        yield from list(live.frame.f_locals.values())
    yield from list(scene.incident.namespace.values())


def _trained(model: DistributedDataParallel) -> list[tuple[str, torch.nn.Parameter]]:
    """The parameters in the order in which DistributedDataParallel numbers them."""
    named = model.module.named_parameters()
    ignored = model.parameters_to_ignore
    return [(n, p) for n, p in named if p.requires_grad and n not in ignored]


def missing_parameters(scene: Scene) -> list[tuple[str, torch.nn.Parameter]]:
    """The parameters whose numbers the message lists, by name."""
    numbers = [int(n) for n in scene.match.captures.get("indices", "").split() if n.isdigit()]
    models = wrapped_models(scene)
    if not models or not numbers:
        return []
    known = _trained(models[0])
    return [known[n] for n in numbers if n < len(known)]


def parameter_at(scene: Scene, index: str) -> str:
    """The name of the parameter with this number, "" where it is not known."""
    models = wrapped_models(scene)
    known = _trained(models[0]) if models and index.isdigit() else []
    return known[int(index)][0] if known and int(index) < len(known) else ""


def constructor(scene: Scene) -> Place | None:
    """The one call that wraps a model."""
    found = list(scene.index.calls("DistributedDataParallel", "DDP", of="torch"))
    source, call = found[0] if len(found) == 1 else (None, None)
    return None if source is None or call is None else source.place(call.lineno, None, call)
