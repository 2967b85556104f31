"""What the user calls the old value."""

from __future__ import annotations

import ast
from dataclasses import replace

import torch

from autograd_explain.inspect.live.names import Names
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Role, TensorFact
from autograd_explain.program import called_name

from .freed_part import FreedPart
from .memoization import Memoized


def culprit_of(scene: Scene, part: FreedPart, memory: Memoized | None) -> TensorFact:
    """The old value, named as the program keeps it, then by live names."""
    bound = _bound_names(part, memory)
    assigned = tuple(dict.fromkeys(n for n in (part.carried, *bound) if n))
    tensor, live = _live_tensor(scene, part, assigned)
    first = _live_twins(scene.names, (part.carried,)) if part.carried else ()
    if memory is not None:
        function = memory.name.partition("(")[0]
        first = (memory.name, *_live_twins(scene.names, (memory.name,)), function)
    if part.binding is not None and part.binding.inside is not None:
        assigned = ()  # a library's words
    names = tuple(dict.fromkeys((*first, *assigned[: len(part.carried) > 0], *live, *assigned)))
    names = (*names, *(n for n in map(without_item, names[:2]) if n not in names))
    if tensor is None:
        return TensorFact(Role.CULPRIT, names, grad_fn=part.boundary.name)
    fact = scene.fact(Role.CULPRIT, tensor)
    return replace(fact, names=names or fact.names)


def _bound_names(part: FreedPart, memory: Memoized | None) -> tuple[str, ...]:
    """The names that got the old value; of a remembered call none that got more than its value."""
    if part.binding is None:
        return ()
    value = getattr(part.binding.statement, "value", None)
    if memory is not None and memory.how == "decorator" and isinstance(value, ast.expr):
        called = memory.name in (ast.unparse(value), called_name(value))
        return part.binding.names if called else ()
    return part.binding.names


def _live_tensor(
    scene: Scene, part: FreedPart, assigned: tuple[str, ...]
) -> tuple[torch.Tensor | None, tuple[str, ...]]:
    """The old value where it lives, and the live names that it has, or may have."""
    if part.carrier is not None:
        return part.carrier.tensor, scene.names.of(part.carrier.tensor)
    twins = _live_twins(scene.names, assigned)
    if part.whole and scene.roots:
        return scene.roots[0], (*scene.names.of(scene.roots[0]), *twins)
    return None, twins


def _live_twins(names: Names, assigned: tuple[str, ...]) -> tuple[str, ...]:
    """`model.state` for `self.state`: live tensors under the attribute that the maker assigns."""
    endings = tuple("." + a.split(".", 1)[1] for a in assigned if a.startswith("self."))
    exact = {a for a in assigned if not a.startswith("self.")}
    return tuple(
        n.name
        for n in names.tensors
        if n.name in exact or without_item(n.name).endswith(endings or ("\0",))
    )[:4]


def without_item(name: str) -> str:
    return name.rsplit("[", 1)[0] if name.endswith("]") else name
