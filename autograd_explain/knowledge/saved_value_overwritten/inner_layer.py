"""The layer inside a called module that returned what was saved: a value that has no name of its
own, since it lived only while a package, or torch, ran the layers."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from autograd_explain.inspect.facts.called_module import called_module
from autograd_explain.inspect.facts.expressions import expression_at
from autograd_explain.inspect.facts.overwrite import Overwrite
from autograd_explain.inspect.live.graph import GraphNode
from autograd_explain.inspect.scene import Scene


def inner_layer(scene: Scene, overwrite: Overwrite) -> tuple[str, ...]:
    """`net[1](...)`, and `net[1]`: the one layer of the module that the saving line calls which is
    named after the operation; () where none is, or several may be."""
    maker = overwrite.maker
    spot = None if maker is None else expression_at(scene, maker.place)
    called = None if spot is None else called_module(scene, spot.callable)
    if called is None or overwrite.saved.name != "result":
        return ()
    kind = overwrite.saved.node.name.rstrip("0123456789").removesuffix("Backward").lower()
    layers = [m for m in called.modules() if type(m).__name__.lower() == kind]
    if len(layers) > 1:
        layers = list(_behind(scene, overwrite.saved.node, called, layers))
    elif any(_calls(m, kind) for m in called.modules() if m not in layers):
        return ()
    names = [n for n, m in scene.names.held_modules if len(layers) == 1 and m is layers[0]]
    return (f"{names[0]}(...)", names[0]) if names else ()


def _calls(module: torch.nn.Module, function: str) -> bool:
    """Whether a forward computes by the function itself, `F.relu(x)`."""
    code = getattr(type(module).forward, "__code__", None)
    return code is not None and not {function, f"{function}_"}.isdisjoint(code.co_names)


def _behind(
    scene: Scene, node: GraphNode, called: torch.nn.Module, layers: list[torch.nn.Module]
) -> Iterator[torch.nn.Module]:
    """Those that a Sequential runs behind the last part with parameters that the node computes
    from, and before the next such part."""
    last = _last_used(scene, node)
    for whole in called.modules():
        if type(whole).forward is not torch.nn.Sequential.forward:
            continue
        behind = False
        for part in whole.children():
            own = list(part.parameters())
            if own:
                behind = any(p is leaf for leaf in last for p in own)
            elif behind and part in layers:
                yield part


def _last_used(scene: Scene, node: GraphNode) -> list[torch.Tensor]:
    """The leaves nearest below a node."""
    level, seen = [node], set[int]()
    while level:
        level = [n for n in level if id(n.node) not in seen]
        seen |= {id(n.node) for n in level}
        leaves = [leaf for n in level if (leaf := n.variable) is not None]
        if leaves:
            return leaves
        below = (scene.graph.find(child) for n in level for child in n.children)
        level = [n for n in below if n is not None]
    return []
