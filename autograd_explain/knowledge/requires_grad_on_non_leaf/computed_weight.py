"""A tensor that an object computes from its parameters whenever it is needed, and these parameters.

A parametrization and a property compute at every access, the hooks of `torch.nn.utils.weight_norm`,
`spectral_norm` and `prune` before every forward pass: the flag is that of the parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.nn.utils import parametrize

from autograd_explain.arguments import values_given
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.property_leaves import leaves_of_property, property_at
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place
from autograd_explain.program import own_nodes


@dataclass(frozen=True)
class Instead:
    """The code for what stands at a place: a statement, or an element of a list.  It is about the
    `parameters` that `tensor` is computed from: whenever it is `read`, or by a module."""

    place: Place
    code: str
    tensor: str
    parameters: tuple[str, ...]
    element: bool = False
    read: bool = False


def flag_set(statement: ast.stmt | None) -> tuple[ast.expr, ast.expr | None] | None:
    """The expression whose flag a statement sets, and the flag where it is written."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Attribute) and target.attr == "requires_grad":
                return target.value, statement.value
    for node in () if statement is None else ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "requires_grad_":
                given = values_given(node)
                return node.func.value, next(iter(given), None)
    return None


def parameters_behind(scene: Scene, shown: ExprAt) -> tuple[str, ...]:
    """What holds the parameters of a computed attribute, as the program can name it."""
    node = shown.node
    if not isinstance(node, ast.Attribute):
        return ()
    owner = shown.inside(node.value)
    module = scene.slicer.value(owner)
    if is_property(scene, shown):
        return leaves_of_property(scene, shown)
    held = _held(module, node.attr) if isinstance(module, torch.nn.Module) else ()
    return tuple(f"{owner.text}.{n}" for n in held)


def is_property(scene: Scene, shown: ExprAt) -> bool:
    """Whether reading it runs a property's code, which need not give the same tensor again."""
    read, name = property_at(scene, shown), getattr(shown.node, "attr", None)
    if read is None:
        return False
    return not (isinstance(read[1], torch.nn.Module) and parametrize.is_parametrized(read[1], name))


def _held(module: torch.nn.Module, name: str) -> Iterator[str]:
    if parametrize.is_parametrized(module, name):
        yield f"parametrizations.{name}"
        return
    own = {id(p): n for n, p in module._parameters.items() if p is not None}
    hooks = (vars(h) for h in module._forward_pre_hooks.values() if hasattr(h, "__dict__"))
    if any(name in (h.get("name"), h.get("_tensor_name")) for h in hooks):
        yield from (n for n in own.values() if n.startswith(f"{name}_"))


def instead(scene: Scene, shown: ExprAt) -> tuple[Instead, ...]:
    """What is to be written for a flag set on such a tensor, and for those below it in the same
    function that would be refused in turn; () for the flag of another tensor."""
    if isinstance(shown.node, ast.Name):
        return tuple(_elements(scene, shown))
    if not parameters_behind(scene, shown):
        return ()
    nodes = (n for n in own_nodes(shown.scope.body) if isinstance(n, ast.stmt))
    simple = (n for n in nodes if not hasattr(n, "body") and n.lineno >= shown.node.lineno)
    return tuple(i for s in simple if (i := _statement(scene, shown, s)) is not None)


def _statement(scene: Scene, shown: ExprAt, statement: ast.stmt) -> Instead | None:
    found = flag_set(statement)
    behind = () if found is None else parameters_behind(scene, spot := shown.inside(found[0]))
    if found is None or not behind:
        return None
    flag = "" if found[1] is None else ast.unparse(found[1])
    code = "".join(f"{name}.requires_grad_({flag})\n" for name in behind)
    read = is_property(scene, spot)
    return Instead(scene.slicer.place(spot), code, spot.text, behind, read=read)


def _elements(scene: Scene, shown: ExprAt) -> Iterator[Instead]:
    """`for p in (conv.weight, conv.bias): p.requires_grad = False`"""
    for made in scene.slicer.makers(shown):
        index = scene.slicer.index(made.scope.source)
        if isinstance(index.parents.get(made.node), (ast.List, ast.Tuple, ast.Set)):
            names = parameters_behind(scene, made)
            parts = (f"*{n}.parameters()" if ".parametrizations." in n else n for n in names)
            if names:
                code, read = ", ".join(parts), is_property(scene, made)
                yield Instead(scene.slicer.place(made), code, made.text, names, True, read)
