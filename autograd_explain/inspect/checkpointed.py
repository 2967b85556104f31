"""Why a checkpointed function does something else when backward runs it again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ..model import Place
from ..program import Program, Source, called_name, own_nodes
from .definitions import Definition, calls, definition, method
from .scene import Scene

#: Methods that change what they are called on, or take something out of it.
_CHANGING = frozenset(
    "append extend insert pop popleft popitem clear update add remove discard setdefault".split()
)
_RANDOM = ("random.", "np.random.", "numpy.random.", "time.", "uuid.", "secrets.")
_MODES = ("eval", "train", "set_autocast_enabled", "set_grad_enabled")


@dataclass(frozen=True)
class Suspect:
    """A statement that makes a second run of `function` differ: it changes a "state", draws a
    "random" number, or changes the "mode" between the runs."""

    kind: str
    function: str
    place: Place


def suspects(scene: Scene) -> list[Suspect]:
    """What speaks for a difference in the checkpointed functions of the user's, surest first."""
    found: list[Suspect] = []
    for source, call in calls(scene.program, "checkpoint", "checkpoint_sequential"):
        for body in _bodies(scene, source, call):
            found += _inside(body)
        found += _between(source, call)
    order = ("state", "random", "mode")
    unique = {s.place: s for s in reversed(found)}
    return sorted(unique.values(), key=lambda s: order.index(s.kind))


def _bodies(scene: Scene, source: Source, call: ast.Call) -> Iterator[Definition]:
    """The source of the function that is checkpointed: of a live object, else by its name."""
    given = next((a for a in call.args if not isinstance(a, ast.Starred)), None)
    if isinstance(given, ast.Lambda):
        yield Definition(source, given)
    if given is None:
        return
    value = scene.incident.namespace.get(ast.unparse(given))
    if isinstance(value, torch.nn.Module):
        modules = (method(scene.program, type(m), "forward") for m in value.modules())
        yield from (m for m in modules if m is not None)
        return
    live = definition(scene.program, value)
    if live is not None:
        yield live
        return
    name = str(getattr(given, "attr", getattr(given, "id", "")))
    for cell in scene.program.cells:
        for node in ast.walk(cell.tree):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                yield Definition(cell, node)


def _inside(body: Definition) -> Iterator[Suspect]:
    local = _local_names(body)
    shared = _declared_global(body)
    for node in own_nodes(body.node):
        kind = _kind(node, local - shared, shared)
        if kind:
            yield Suspect(kind, body.name or "lambda", body.at(node))


def _kind(node: ast.AST, local: set[str], shared: set[str]) -> str:
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return "state" if any(_outlives(t, local, shared) for t in targets) else ""
    if not isinstance(node, ast.Call):
        return ""
    function = ast.unparse(node.func)
    if function.startswith(_RANDOM):
        return "random"
    if function == "next" and node.args and _head(node.args[0]) not in local:
        return "state"
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    outside = owner is not None and _head(owner) not in local
    return "state" if outside and called_name(node) in _CHANGING else ""


def _outlives(target: ast.expr, local: set[str], shared: set[str]) -> bool:
    """Whether the assigned thing is there after the function has returned."""
    if isinstance(target, ast.Name):
        return target.id in shared
    if isinstance(target, (ast.Attribute, ast.Subscript)):
        return _head(target) not in local or _head(target) == "self"
    return any(_outlives(t, local, shared) for t in getattr(target, "elts", ()))


def _head(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _local_names(body: Definition) -> set[str]:
    """What the function itself binds, its parameters but `self` included."""
    arguments = body.node.args
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    stored = (n for n in own_nodes(body.node) if isinstance(n, ast.Name))
    names |= {n.id for n in stored if isinstance(n.ctx, ast.Store)}
    return names - {"self"}


def _declared_global(body: Definition) -> set[str]:
    kinds = (ast.Global, ast.Nonlocal)
    return {name for n in own_nodes(body.node) if isinstance(n, kinds) for name in n.names}


def _between(source: Source, call: ast.Call) -> Iterator[Suspect]:
    """A switch of the mode after the checkpoint and before the next backward of the cell."""
    given = ast.unparse(call.args[0]) if call.args else "checkpoint"
    later = [n for n in ast.walk(source.tree) if isinstance(n, ast.Call) and n.lineno > call.lineno]
    later.sort(key=lambda n: n.lineno)
    for node in later:
        if called_name(node) == "backward":
            return
        if called_name(node) in _MODES:
            yield Suspect("mode", given, source.place(node.lineno, None, node))


def reentrant_calls(program: Program) -> list[tuple[Source, ast.Call]]:
    """The checkpoints that ask for the reentrant kind, by name or by saying nothing."""
    found = calls(program, "checkpoint", "checkpoint_sequential")
    return [(s, c) for s, c in found if not any(_is_off(k) for k in c.keywords)]


def _is_off(keyword: ast.keyword) -> bool:
    value = keyword.value
    return (
        keyword.arg == "use_reentrant" and isinstance(value, ast.Constant) and value.value is False
    )
