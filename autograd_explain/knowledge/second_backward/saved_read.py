"""A saved value was read from a node (`fn._saved_self`) that a backward had passed."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from autograd_explain.inspect.facts.expressions import surfaced
from autograd_explain.inspect.facts.freed_part import backward_calls
from autograd_explain.inspect.facts.overwrite import label
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, What

VARIANT = "saved_read"


def saved_read(scene: Scene, example: Mapping[str, str]) -> Finding | None:
    """The finding where no backward failed but the reading of a node's saved value."""
    spot = surfaced(scene)
    if scene.roots or spot is None or not isinstance(spot.node, ast.Attribute):
        return None
    if not spot.node.attr.startswith("_saved_") and spot.node.attr != "saved_tensors":
        return None
    calls = backward_calls(scene)
    first = calls[0] if len(calls) == 1 else None
    freed = scene.event(What.FREED, first)
    known = {
        "tensor": ast.unparse(spot.node.value),
        "failed": spot.text,
        "failed_place": label(scene.place),
        "first": "" if first is None else first.place.source,
        "first_place": "" if first is None else label(first.place),
    }
    return Finding(
        cause="second_backward",
        confidence=Confidence.PROVEN,
        facts={name: known.get(name, "") for name in example},
        events=(*(() if freed is None else (freed,)), scene.failed()),
        variant=VARIANT,
    )
