"""All that a copied object keeps with a graph, wherever in it: copies of it, or its end."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

import torch

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.safe_lookup import MISSING
from autograd_explain.inspect.facts.failing_loops import failing_loops
from autograd_explain.inspect.facts.held_code import copies_by_identity, detaching
from autograd_explain.inspect.facts.held_tensors import Held, Way, held_tensors
from autograd_explain.inspect.live.graph import Graph
from autograd_explain.inspect.scene import Scene

_SECONDS = 0.2
_MOST_TENSORS = 200
_LONGEST = 240


@dataclass(frozen=True)
class Inside:
    """`name` is what the program calls the object, `memo` the dict that hands `copy.deepcopy` a
    copy of each such tensor, `spent` the statements that cut them off; "" where that cannot be
    written, or would change the program."""

    name: str
    memo: str
    spent: str
    alone: bool  #: one attribute leads to all of them


def inside_of(scene: Scene, copied: ExprAt | None, root: Any) -> Inside | None:
    """What the copied object keeps with a graph; None where it has no name, or keeps nothing."""
    if copied is None:
        root = _copied_by_library(scene)
    held = None if root is MISSING else held_tensors(root)
    name = _name(scene, root) if copied is None else _path(copied)
    tensors = [] if held is None else [tensor for _, tensor in held.tensors()]
    if held is None or not name or len(tensors) > _MOST_TENSORS:
        return None
    memo = copies_by_identity(held, name, again=_comes_again(scene))
    spent = detaching(held, name, scene.program.names) if all(map(_is_spent, tensors)) else ""
    short = memo if len(memo) <= _LONGEST else ""
    return Inside(name, short, spent, _attributes(held) == 1)


def _attributes(held: Held) -> int:
    """How many attributes hold such tensors, or a container of them."""
    own = (
        max(i for i, p in enumerate(c) if not i or p.way is Way.ATTRIBUTE) for c in held.chains()
    )
    last = (chain[i] for chain, i in zip(held.chains(), own, strict=True))
    return len({id(part) for part in last})


def _comes_again(scene: Scene) -> bool:
    """Whether the failing line stands in a loop or a function."""
    in_function = scene.place is not None and scene.place.function is not None
    return in_function or bool(failing_loops(scene))


def _path(copied: ExprAt) -> str:
    """The text of what is copied, where reading it twice gives the same: no call in it."""
    inner = ast.walk(copied.node)
    plain = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)
    return copied.text if all(isinstance(n, plain) for n in inner) else ""


def _copied_by_library(scene: Scene) -> Any:
    """What a library handed to `copy.deepcopy`."""
    for live in scene.incident.frames:
        if live.function == "deepcopy" and live.filename.replace("\\", "/").endswith("/copy.py"):
            return live.frame.f_locals.get("x", MISSING)
    return MISSING


def _name(scene: Scene, root: Any) -> str:
    """A name of the notebook for a module; "" in a function, where it may mean another one in the
    next call."""
    if scene.place is None or scene.place.function is not None:
        return ""
    return next((n for n, module in scene.names.held_modules if module is root), "")


def _is_spent(tensor: torch.Tensor) -> bool:
    """Whether a backward has freed its graph: nothing can go through it again."""
    return Graph([tensor], seconds=_SECONDS).is_freed
