"""The hooks of torch.nn.utils that store a computed weight, and where the program asks for them.

`weight_norm` and `spectral_norm` make a weight a plain attribute and store the result of an
operation in it before each forward pass.  The functions of the same name in
torch.nn.utils.parametrizations store nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.scene import Scene
from autograd_explain.program import called_name, last_name

_HOOKS = {
    ("torch.nn.utils.weight_norm", "WeightNorm"): "weight_norm",
    ("torch.nn.utils.spectral_norm", "SpectralNorm"): "spectral_norm",
}
#: How an old hook's name of a tensor ends that it computes from.
_PARTS = ("_g", "_v", "_orig", "_u")
_SAVED = ("save", "dump", "dumps", "script")


@dataclass(frozen=True, eq=False)
class OldNorm:
    """`function` is the function of torch.nn.utils, `asked` the expressions that call it or hand
    it on; `replaceable`: nothing in sight relies on how it stores the weight."""

    function: str
    asked: tuple[ExprAt, ...]
    replaceable: bool


def old_norm(scene: Scene, owner: Any, attribute: str, root: Any) -> OldNorm | None:
    """The function whose hook stores `attribute` of a module; None for any other attribute, and
    where the program itself does not ask for that function."""
    function = _hook_of(owner, attribute)
    asked = list(_asked(scene, function)) if function else []
    if not asked:
        return None
    modules = list(root.modules()) if isinstance(root, torch.nn.Module) else [owner]
    hooked = [m for m in modules if _hook_of(m)]
    alone = {_hook_of(m) for m in hooked} == {function}
    # An RNN reads its weights from a list that a parametrization does not renew (torch 2.13).
    plain = not any(isinstance(m, torch.nn.RNNBase) for m in hooked)
    known = hasattr(torch.nn.utils.parametrizations, function)
    replaceable = alone and plain and known and not _is_relied_on(scene)
    return OldNorm(function, tuple(_of_kind(asked, type(owner).__name__)), replaceable)


def _hook_of(module: Any, attribute: str = "") -> str:
    """The function that gave a module such a hook (for this attribute); "" where none did."""
    hooks = module._forward_pre_hooks.values() if isinstance(module, torch.nn.Module) else ()
    for hook in hooks:
        found = _HOOKS.get((type(hook).__module__, type(hook).__name__), "")
        if found and attribute in ("", getattr(hook, "name", "")):
            return found
    return ""


def _asked(scene: Scene, function: str) -> Iterator[ExprAt]:
    """The calls of a function of torch.nn.utils, and where it is handed on without a call."""
    slicer, wanted = scene.slicer, getattr(torch.nn.utils, function)
    for source, node in scene.index.nodes(ast.expr):
        if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
            continue
        spot = slicer.at(source, node)
        if slicer.value(spot) is wanted:
            around = source.parents.get(node)
            called = isinstance(around, ast.Call) and around.func is node
            yield spot.inside(around) if called and isinstance(around, ast.expr) else spot


def _of_kind(asked: list[ExprAt], kind: str) -> list[ExprAt]:
    """Those around a constructor of the module's class (`weight_norm(nn.Conv1d(…))`), else all."""
    around = [
        s for s in asked
        if isinstance(s.node, ast.Call) and s.node.args and called_name(s.node.args[0]) == kind
    ]  # fmt: skip
    return around or asked


def _is_relied_on(scene: Scene) -> bool:
    """Whether the program reads what only an old hook stores, tells modules by their very class
    (a parametrized one has a class of its own), or saves whole modules."""
    slicer = scene.slicer
    for source, node in scene.index.nodes(ast.AST):
        if _reads_parts(node) or _tells_classes(node):
            return True
        if isinstance(node, ast.Call) and called_name(node) in _SAVED and node.args:
            saved = slicer.at(source, node.args[0])
            if _may_be_module(slicer.value(saved), saved.node):
                return True
    return False


def _reads_parts(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.endswith(_PARTS)
    name = last_name(node)
    removed = name in ("remove_weight_norm", "remove_spectral_norm")
    return removed or (isinstance(node, ast.Attribute) and name.endswith(_PARTS))


def _tells_classes(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("__class__", "__name__")
    return isinstance(node, ast.Compare) and any(
        called_name(n) == "type" for n in (node.left, *node.comparators)
    )


def _may_be_module(value: Any, node: ast.AST) -> bool:
    if value is MISSING:
        return isinstance(node, (ast.Name, ast.Attribute))
    return isinstance(value, torch.nn.Module) or value is None
