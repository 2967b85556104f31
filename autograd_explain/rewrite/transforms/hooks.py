"""Hooks of tensors: one for a module's, and one that keeps all but a part of a leaf's gradient."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ...model import Edits
from ...program import Program
from ..analysis.effects import fresh
from ..engine.edits import then
from .spot import Spot

if TYPE_CHECKING:
    from ...inspect.facts.user_hooks import ModuleHook


def hook_on_output(program: Program, found: ModuleHook | None) -> Edits | None:
    """A full backward hook, `net.body.register_full_backward_hook(keep)`, becomes a
    forward hook that registers `keep` on the output, for one that only looks at its gradient."""
    if found is None or not found.looks:
        return None
    function = (
        "def hook_output(module, args, output, hook={hook}):\n"
        "    if output.requires_grad:\n"
        "        output.register_hook(lambda grad: hook(module, None, (grad,)))\n"
    )
    defined = Spot(program, found.place).before(function, hook=found.hook)
    registered = f"{found.module}.register_forward_hook(hook_output)"
    return then(program, defined, lambda p, at: Spot(p, at).replaced(registered), found.place)


def without_part(spot: Spot) -> Edits | None:
    """Instead of a statement about `w[:3]`: a hook of `w` that keeps the gradient from there.  It
    multiplies: that holds for a sparse gradient, too, as an embedding may have."""
    node, own = spot.node, spot.own
    if not isinstance(node, ast.Subscript) or own is None:
        return None
    return spot.instead(
        "{mask} = {whole}.new_ones({whole}.shape, dtype=bool)\n"
        "{mask}[{part}] = False\n"
        "{whole}.register_hook(lambda grad, {mask}={mask}: grad * {mask})",
        mask=fresh(spot.tree, own, "trained"),
        whole=spot.code(node.value),
        part=spot.code(node.slice),
    )
