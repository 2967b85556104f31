"""A carried value that took the name of the tensor which an optimizer holds."""

from __future__ import annotations

import torch

from autograd_explain.inspect.scene import Scene
from autograd_explain.nodes import GraphTraversal

from .freed_part import FreedPart


def replaces_held_leaf(scene: Scene, part: FreedPart) -> bool:
    """Whether an optimizer steps a leaf behind the old value that no name leads to any more.

    `canvas = canvas.clamp(0, 1)`: the rounds go on from the new tensor, the optimizer writes to
    the first one; detaching the new one would leave the optimizer without a gradient.
    """
    optimizers = [o for _, o in scene.names.objects if isinstance(o, torch.optim.Optimizer)]
    held = {id(p) for o in optimizers for group in o.param_groups for p in group["params"]}
    named = {id(n.tensor) for n in scene.names.tensors if ".param_groups" not in n.name}
    leaves = GraphTraversal([part.boundary.node], limit=2_000).leaves()
    return any(id(leaf) in held and id(leaf) not in named for leaf in leaves)
