"""An object of an installed package that keeps a value with its graph from round to round."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.called_module import called_module
from autograd_explain.inspect.facts.container_puts import live_object
from autograd_explain.inspect.facts.failing_loops import failing_loops
from autograd_explain.inspect.facts.held_by_library import held_by_library
from autograd_explain.inspect.facts.library_cache import (
    holds_in_eval,
    is_cache,
    keeps_for,
    options_of,
    puts_into,
    setters,
)
from autograd_explain.inspect.facts.loop_carried import LoopCarried
from autograd_explain.inspect.facts.torch_call import backward_roots
from autograd_explain.inspect.live.names import without_item
from autograd_explain.inspect.scene import Scene
from autograd_explain.isolation.type_checks import is_a, items, table_of
from autograd_explain.model import Place
from autograd_explain.program import called_name, is_of_package

from .calls import Calls
from .freed_part import FreedPart, old_names
from .made_outside import called_around, is_in_graph
from .step_effect import held_by


@dataclass(frozen=True)
class KeptByLibrary:
    """`names` lead to the value, the user's own first; `place` is the user's call that has the
    object keep it.  `cache` says that the object computes the value where it is None, and never
    from itself; `options` are the calls that make objects of its class, with what has them keep
    it, and `switch` the one of them that made this."""

    names: tuple[str, ...]
    place: Place
    owner: Any
    cache: bool
    options: tuple[tuple[Place, str], ...] = ()
    switch: Place | None = None


def kept_by_library(scene: Scene, part: FreedPart) -> KeptByLibrary | None:
    """The one value with a graph that such an object holds, where a call of it reads the old
    value; None where there is none, or several."""
    path = () if part.reader is None else part.reader.path
    carried = None if part.carrier is None else part.carrier.tensor
    for place in reversed(path):
        found = {(id(o), a): (call, o, a, t) for call, o, a, t in _held(scene, place)}
        if len(found) > 1:  # layers that follow each other on one line
            found = {key: kept for key, kept in found.items() if kept[-1] is carried}
        if len(found) == 1:
            ((call, owner, attribute, tensor),) = found.values()
            names = [without_item(n) for n in scene.names.of(tensor)]
            names = [n for n in names if n.endswith(f".{attribute}")]
            given = tuple(dict.fromkeys(names))
            return _kept(scene, given, call, owner, attribute)
    return _by_name(scene, part) or (_in_graph(scene, part) if not part.carried else None)


def _in_graph(scene: Scene, part: FreedPart) -> KeptByLibrary | None:
    """By what modules of packages hold that the failing graph leads to, where the history does not
    say who reads it; and the call of the first of them, or of what it belongs to: the one that made
    the old value, where that is known."""
    modules = [(n, m) for n, m in scene.names.held_modules if is_of_package(type(m))]
    for name, module in sorted(modules, key=lambda pair: -len(pair[0])):
        held = [n for n in scene.names.tensors if n.name.startswith(f"{name}._")]
        inside = [n.name for n in held if is_in_graph(scene, n.tensor)]
        owner, path = module, name
        calls: list[ExprAt] = []
        while inside and path and not calls:
            calls = [c for c in _calls(scene) if _is_of(scene, c, owner, path)]
            path = path.rpartition(".")[0]
            owner = live_object(scene, path) if path else MISSING
        if calls:
            attribute = inside[0].removeprefix(f"{name}.").partition("[")[0].partition(".")[0]
            names = dict.fromkeys((f"{name}.{attribute}", name, *map(without_item, inside)))
            made = () if part.maker is None else [place.line_id for place in part.maker.path]
            ran = (c for c in calls if scene.slicer.place(c).line_id in made)
            near = called_around(scene)
            calls.sort(key=lambda c: (not _is_here(scene, c), c.scope.body not in near))
            before = (c for c in calls if _is_before(scene, c))
            call = next(ran, None) or next(before, calls[0])
            return _kept(scene, tuple(names), call, module, attribute)
    return None


def _is_here(scene: Scene, call: ExprAt) -> bool:
    """Whether it stands in the failing line's function, which has the object of these names."""
    at = scene.place
    return at is not None and scene.slicer.place(call).function_id == at.function_id


def _is_before(scene: Scene, call: ExprAt) -> bool:
    """Whether it stands before the failing line, in one source with it."""
    place, at = scene.slicer.place(call), scene.place
    same = at is not None and (place.cell, place.file) == (at.cell, at.file)
    return same and at is not None and place.line <= at.line


def _is_of(scene: Scene, call: ExprAt, owner: Any, path: str) -> bool:
    """Whether a call runs a module, or an attribute of its name in the user's classes."""
    spot, last = call.callable, path.rpartition(".")[2]
    value = MISSING if spot is None else scene.slicer.value(spot)
    unknown = value is MISSING and spot is not None
    return value is owner or (unknown and spot is not None and spot.text == f"self.{last}")


def _by_name(scene: Scene, part: FreedPart) -> KeptByLibrary | None:
    """By a live name of the old value, `net.conv._cache`, and the only call of what holds it."""
    for name in map(without_item, old_names(scene, part)):
        path, _, attribute = name.rpartition(".")
        owner = live_object(scene, path)
        if owner is not MISSING and keeps_for(owner, attribute) is not None:
            calls = [c for c in _calls(scene) if _may_be_of(scene, c, owner, path)]
            calls = [c for c in calls if _gave_root(scene, c)] if part.whole else calls
            if len(calls) == 1:
                return _kept(scene, (name,), calls[0], owner, attribute)
    return None


def _gave_root(scene: Scene, call: ExprAt) -> bool:
    """Whether the call gave what goes backward, or is that."""
    roots = {root.text for root in backward_roots(scene)}
    targets = getattr(scene.slicer.statement(call), "targets", ())
    return not roots.isdisjoint((call.text, *map(ast.unparse, targets)))


def carried_by_library(scene: Scene, part: FreedPart) -> LoopCarried | None:
    """What objects of packages hold for the next round, and the one call of the loops around the
    failing line that has the first of them keep it, where its text says so."""
    held = held_by_library(scene, part.old)
    if held is None:
        return None
    path, _, attribute = held.names[0].rpartition(".")
    owner = live_object(scene, path)
    calls = [c for c in _calls(scene) if _may_be_of(scene, c, owner, path)]
    keeping = [c for c in calls if puts_into(type(owner), _method(c, owner), attribute)]
    keeping = [c for c in keeping if _is_of_rounds(scene, c)]
    return replace(held, given=scene.slicer.place(keeping[0])) if len(keeping) == 1 else held


def _is_of_rounds(scene: Scene, call: ExprAt) -> bool:
    """Whether a call is in the text of a loop around the failing line, or of a function that failed
    inside the loop, or that one of these texts calls."""
    loops, place = failing_loops(scene), scene.slicer.place(call)
    level = next((i for i, p in enumerate(loops.path) if loops.around(p) is not None), None)
    failed = [] if level is None else scene.slicer.frame_chain[level + 1 :]
    inner = [scope.body for _, scope in failed]
    texts = (*(loop.node for loop in loops.loops), *inner)
    called = {called_name(n) for text in texts for n in ast.walk(text) if isinstance(n, ast.Call)}
    named = place.function is not None and place.function in called
    within = any(loop.holds(place) for loop in loops.loops)
    return within or named or any(call.scope.body is body for body in inner)


def _method(call: ExprAt, owner: Any) -> str:
    """What a call of an object runs: the method that it names, or what its class is called by."""
    function = call.node.func if isinstance(call.node, ast.Call) else None
    named = function.attr if isinstance(function, ast.Attribute) else ""
    called = "forward" if is_a(owner, torch.nn.Module) else "__call__"
    return named if callable(getattr(type(owner), named, None)) else called


def _kept(
    scene: Scene, names: tuple[str, ...], call: ExprAt, owner: Any, attribute: str
) -> KeptByLibrary:
    cache, options = is_cache(owner, attribute), tuple(options_of(scene, owner, attribute))
    setting = list(_setting(scene, call, owner, attribute))
    made = setting[0] if len(setting) == 1 else call
    switch = _made_as(scene, names, tuple(dict.fromkeys(place for place, _ in options)))
    return KeptByLibrary(names, scene.slicer.place(made), owner, cache, options, switch)


def _made_as(scene: Scene, names: tuple[str, ...], made: tuple[Place, ...]) -> Place | None:
    """The one of these statements that gives its object the name that leads to the value,
    `self.conv = …` for `net.conv._kept`; the only one whatever its name."""
    called = {name.rpartition(".")[0].rpartition(".")[2] for name in names}
    found = []
    for place in made:
        statement = scene.program.statement_at(place)
        targets = ast.walk(statement) if isinstance(statement, ast.Assign) else ()
        given = (n for n in targets if isinstance(getattr(n, "ctx", None), ast.Store))
        if any(ast.unparse(n).rpartition(".")[2] in called for n in given):
            found.append(place)
    found = found or list(made)
    return found[0] if len(found) == 1 else None


def _setting(scene: Scene, call: ExprAt, owner: Any, attribute: str) -> Iterator[ExprAt]:
    """The calls of methods that set an object's attribute, where calling the object does not."""
    named = {spot.text for spot in _owners(call)}
    setting = {method.name for method, _ in setters(type(owner), attribute)}
    for name in sorted(setting - {"__init__"}) if "forward" not in setting else ():
        for source, node in scene.index.calls(name):
            spot = scene.slicer.at(source, node).receiver
            value = MISSING if spot is None else scene.slicer.value(spot)
            if value is owner or (value is MISSING and spot is not None and spot.text in named):
                yield scene.slicer.at(source, node)


def run_at(scene: Scene, place: Place | None, part: torch.nn.Module) -> str:
    """What a line calls the module in eval mode that it runs, which has this one in it."""
    source, statement = scene.program.source_at(place), scene.program.statement_at(place)
    calls = () if source is None or statement is None else ast.walk(statement)
    for call in (scene.slicer.at(source, n) for n in calls if source and isinstance(n, ast.Call)):
        for spot in _owners(call):
            if holds_in_eval(called_module(scene, spot), part):
                return spot.text
    return ""


def is_trained(scene: Scene, calls: Calls, owner: Any) -> bool:
    """Whether an optimizer that has stepped since the earlier backward may hold a parameter of an
    object."""
    if not is_a(owner, torch.nn.Module):
        return True
    own = {id(p) for p in owner.parameters()}
    held = [held_by(scene, call) for _, call in calls.steps]
    return any(ids is None or ids & own for ids in held)


def _calls(scene: Scene) -> Iterator[ExprAt]:
    return (scene.slicer.at(source, node) for source, node in scene.index.nodes(ast.Call))


def _may_be_of(scene: Scene, call: ExprAt, owner: Any, path: str) -> bool:
    last = path.rpartition(".")[2]
    known = [(spot, scene.slicer.value(spot)) for spot in _owners(call)]
    return any(
        value is owner or (value is MISSING and spot.text.rpartition(".")[2] == last)
        for spot, value in known
    )


def _held(scene: Scene, place: Place) -> Iterator[tuple[ExprAt, Any, str, torch.Tensor]]:
    """The calls of a line of objects of a package, each with what the object keeps."""
    source, statement = scene.program.source_at(place), scene.program.statement_at(place)
    for node in ast.walk(statement) if source is not None and statement is not None else ():
        if source is None or not isinstance(node, ast.Call):
            continue
        call = scene.slicer.at(source, node)
        owners = (scene.slicer.value(spot) for spot in _owners(call))
        for owner in (o for o in owners if o is not MISSING):
            for attribute, value in items(table_of(owner)):
                first = _with_graph(value)
                if first is not None and keeps_for(owner, attribute) is not None:
                    yield call, owner, attribute, first


def _owners(call: ExprAt) -> list[ExprAt]:
    """`meter` of `meter.update(x)`; `self.conv` of `self.conv(x)`, a module."""
    return [spot for spot in (call.receiver, call.callable) if spot is not None]


def _with_graph(value: Any) -> torch.Tensor | None:
    """A computed tensor, or the first of a tuple of such; indices may be among them."""
    whole = value if isinstance(value, tuple) else (value,)
    whole = tuple(v for v in whole if not (is_a(v, torch.Tensor) and not v.is_floating_point()))
    found = [v for v in whole if isinstance(v, torch.Tensor) and v.grad_fn is not None]
    return found[0] if found and len(found) == len(whole) else None
