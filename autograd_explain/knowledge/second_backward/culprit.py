"""What the user calls the old value."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

import torch

from autograd_explain.arguments import values_given
from autograd_explain.inspect.dataflow.syntax import PUTS
from autograd_explain.inspect.facts.memoization import Memoized
from autograd_explain.inspect.live.names import Names, holders, without_item
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Role, TensorFact
from autograd_explain.program import called_name

from .freed_part import FreedPart, leading_to
from .handed_object import paths_of

_SHOWN = 4  #: tensors of one object


def culprit_of(scene: Scene, part: FreedPart, memory: Memoized | None) -> TensorFact:
    """The old value, named as the program keeps it, then by live names."""
    bound = _bound_names(scene, part, memory)
    assigned = tuple(dict.fromkeys(n for n in (part.carried, *bound) if n))
    tensor, live = _live_tensor(scene, part, assigned)
    first = _live_twins(scene.names, (part.carried,)) if part.carried else ()
    if memory is not None:
        function = memory.name.partition("(")[0]
        first = (memory.name, *_live_twins(scene.names, (memory.name,)), function)
    if part.binding is not None and part.binding.inside is not None:
        assigned = ()  # a library's words
    names = tuple(dict.fromkeys((*first, *assigned[: len(part.carried) > 0], *live, *assigned)))
    names = tuple(dict.fromkeys((*names, *(h for n in names[:2] for h in holders(n)))))
    if part.kept is not None and part.kept.handed:
        names = (*names, part.kept.handed)
    if tensor is None:
        if not part.carried and memory is None:  # what is known of the old value is who reads it
            read = (*_read_again(scene, part), *_handed_in(scene, part))
            names = tuple(dict.fromkeys((*read, *names)))
        names = names or _filled(scene, part)
        return TensorFact(Role.CULPRIT, names, grad_fn=part.boundary.name)
    fact = scene.fact(Role.CULPRIT, tensor)
    return replace(fact, names=names or fact.names)


def _bound_names(scene: Scene, part: FreedPart, memory: Memoized | None) -> tuple[str, ...]:
    """The names that got the old value, those first that the using statement reads; of a remembered
    call none that got more than its value."""
    if part.binding is None or part.kept is not None:
        return ()
    value = getattr(part.binding.statement, "value", None)
    if memory is not None and memory.how == "decorator" and isinstance(value, ast.expr):
        called = memory.name in (ast.unparse(value), called_name(value))
        return part.binding.names if called else ()
    reading = None if part.reader is None else scene.program.statement_at(part.reader.place)
    read = set() if reading is None else _loaded(reading)
    return tuple(sorted(part.binding.names, key=lambda name: name not in read))


def _loaded(statement: ast.stmt) -> set[str]:
    """What a statement reads, as it is written."""
    nodes = (n for n in ast.walk(statement) if isinstance(getattr(n, "ctx", None), ast.Load))
    return {ast.unparse(n) for n in nodes}


def _read_again(scene: Scene, part: FreedPart) -> Iterator[str]:
    """The attributes that the making statement assigns and the using one reads, where a library
    has computed the value in between: `data.x` of `data.x = conv(data.x, edges)`."""
    reading = None if part.reader is None else scene.program.statement_at(part.reader.place)
    making = None if part.binding is None else part.binding.statement
    if reading is None or not isinstance(making, ast.Assign):
        return
    read = _loaded(reading)
    yield from (t for target in making.targets for t in _paths(target) if t in read)


def _paths(target: ast.expr) -> Iterator[str]:
    """`data.x[0]` and `data.x` of `data.x[0]`, not what it is indexed with; of each of several."""
    if isinstance(target, (ast.Tuple, ast.List)):
        yield from (path for element in target.elts for path in _paths(element))
    elif isinstance(target, (ast.Attribute, ast.Subscript)):
        yield ast.unparse(target)
        yield from _paths(target.value)


def _texts(nodes: Iterable[ast.AST], kinds: tuple[type[ast.expr], ...]) -> Iterator[str]:
    return (ast.unparse(n) for node in nodes for n in ast.walk(node) if isinstance(n, kinds))


def _handed_in(scene: Scene, part: FreedPart) -> Iterator[str]:
    """What the call that uses the old value is given that leads to it: of `net(x, memory)` the
    tensors that `memory` holds, and the object."""
    leading = leading_to(scene, [part.boundary])
    path = () if part.reader is None else part.reader.path
    for place in reversed(path):
        statement = scene.program.statement_at(place)
        calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement else []
        given = [a for call in calls for a in values_given(call)]
        for text in dict.fromkeys(_texts(given, (ast.Name, ast.Attribute))):
            paths = [(n.name, path) for n in leading for path in paths_of(n.name)]
            held = dict((n, p) for n, p in paths if p == text or _is_twin(p, text))
            yield from dict.fromkeys((*[*held][:_SHOWN], *held.values()))


def _filled(scene: Scene, part: FreedPart) -> tuple[str, ...]:
    """The container that the making statement fills, `self.logp` of `self.logp.append(p)`, by live
    names first, where something in it is a part of the failing graph."""
    statement = None if part.binding is None else part.binding.statement
    call = statement.value if isinstance(statement, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    if not isinstance(method, ast.Attribute) or method.attr not in PUTS:
        return ()
    name = ast.unparse(method.value)
    inside = [n for n in scene.names.tensors if n.name.endswith("]")]
    held = [n for n in inside if not n.tensor.is_leaf and scene.graph.find(n.tensor.grad_fn)]
    found = [without_item(n.name) for n in held]
    live = dict.fromkeys(n for n in found if n == name or _is_twin(n, name))
    return (*live, name) if live else ()


def _is_twin(live: str, name: str) -> bool:
    """`rollout.logp` of `self.logp`."""
    return name.startswith("self.") and live.endswith(name.removeprefix("self"))


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
