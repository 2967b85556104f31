"""A hook that keeps a part of a leaf's gradient, or all but that part."""

from __future__ import annotations

import ast

from ...model import Edits
from ..analysis.effects import fresh
from .spot import Spot


def only_part(spot: Spot, kept: bool) -> Edits | None:
    """Instead of a statement about `w[:3]`: a hook of `w` that lets nothing but the gradient there
    through, or (not `kept`) all the rest of it."""
    node, own = spot.node, spot.own
    if not isinstance(node, ast.Subscript) or own is None:
        return None
    return spot.instead(
        "{mask} = {whole}.new_{rest}({whole}.shape, dtype=bool)\n"
        "{mask}[{part}] = {stopped}\n"
        "{whole}.register_hook(lambda grad, {mask}={mask}: grad.masked_fill({mask}, 0))",
        mask=fresh(spot.tree, own, "frozen"),
        whole=spot.code(node.value),
        part=spot.code(node.slice),
        rest="ones" if kept else "zeros",
        stopped=str(not kept),
    )
