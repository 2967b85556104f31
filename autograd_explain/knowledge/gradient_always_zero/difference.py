"""Differences whose sides take each other's gradient away."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.silent_evidence import shown_at
from autograd_explain.inspect.scene import Scene

if TYPE_CHECKING:
    from autograd_explain.verification import SeveredValue


@dataclass(frozen=True, eq=False)
class Difference:
    """`whole` is `a - b`, `older` the side that was computed first, `leaves` what both follow."""

    whole: ExprAt
    older: ExprAt
    leaves: tuple[str, ...]


def differences(scene: Scene) -> Iterator[Difference]:
    """Those that another run of the cell has shown."""
    found: tuple[SeveredValue, ...] = scene.incident.evidence.get("severed", ())
    for value in found:
        whole = None if value.older is None else shown_at(scene, value.place[0])
        if whole is not None and isinstance(whole.node, ast.BinOp):
            older = whole.node.right if value.older else whole.node.left
            yield Difference(whole, whole.inside(older), value.leaves)
