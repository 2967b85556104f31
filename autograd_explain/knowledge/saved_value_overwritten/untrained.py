"""A network that nothing trains, moved between forward and backward: a target or a teacher, whose
output went into the loss with its graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from autograd_explain.inspect.facts.container_puts import live_object
from autograd_explain.inspect.facts.overwrite import Overwrite
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a
from autograd_explain.model import Place
from autograd_explain.program import last_name

_PARAMETERS = ("parameters", "named_parameters", "state_dict", "load_state_dict")


def untrained_call(scene: Scene, found: Overwrite) -> Place | None:
    """The one call that ran the outermost module around an overwritten parameter of which no
    optimizer has one; None where there is no optimizer, where the write does not copy or average
    parameters, or where what its line computed leads to anything but such parameters."""
    trained = scene.gradient_tracer.holds
    place = None if found.guilty is None else found.guilty.place
    if found.maker is None or not any(scene.names.optimizers()) or not _follows(scene, place):
        return None
    for name in scene.names.of(found.saved.tensor):
        untrained = (path for path, m in _modules(scene, name) if not trained(m.parameters()))
        module = next(untrained, "")
        call = _call_of(scene, found.maker.path, module) if module else None
        leaves = () if call is None else _leaves_at(scene, call)
        if leaves and not trained(leaves) and all(is_a(t, torch.nn.Parameter) for t in leaves):
            return call
    return None


def _follows(scene: Scene, place: Place | None) -> bool:
    """Whether a statement, with the loops around it, reads the parameters of two modules and no
    gradient: `for t, p in zip(target.parameters(), net.parameters())`."""
    source, statement = scene.program.source_at(place), scene.program.statement_at(place)
    if source is None or statement is None:
        return False
    loops = (n.iter for n in source.around(statement) if isinstance(n, ast.For))
    names = [last_name(n) for tree in (statement, *loops) for n in ast.walk(tree)]
    return sum(name in _PARAMETERS for name in names) > 1 and "grad" not in names


def _modules(scene: Scene, name: str) -> Iterator[tuple[str, torch.nn.Module]]:
    """`model` and `model.target` of `model.target[2].weight`."""
    for end in (i for i, c in enumerate(name) if c in ".["):
        owner = live_object(scene, name[:end])
        if is_a(owner, torch.nn.Module):
            yield name[:end], owner


def _call_of(scene: Scene, path: tuple[Place, ...], module: str) -> Place | None:
    """The one call on the way to what saved the parameter that is spelled as the module's."""
    found = []
    for place in path:
        source, statement = scene.program.source_at(place), scene.program.statement_at(place)
        nodes = () if source is None or statement is None else ast.walk(statement)
        calls = (n for n in nodes if isinstance(n, ast.Call) and last_name(n.func))
        named = [n for n in calls if last_name(n.func) == module.rpartition(".")[2]]
        found += [source.place(n.lineno, place.function, n) for n in named if source is not None]
    return found[0] if len(found) == 1 else None


def _leaves_at(scene: Scene, call: Place) -> tuple[torch.Tensor, ...]:
    """The leaves behind all that a line has computed."""
    made = ((n, scene.history.maker(n)) for n in scene.graph.inner)
    here = [n for n, m in made if m is not None and call.line_id in [p.line_id for p in m.path]]
    return tuple(n.variable for n in scene.graph.below(here) if n.variable is not None)
