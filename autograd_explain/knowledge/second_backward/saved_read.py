"""A saved value was read from a node (`fn._saved_self`) that a backward had passed."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from autograd_explain.inspect.history import TraceEvent
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Confidence, Finding, What, label, line_facts

VARIANT = "saved_read"


def saved_read(
    scene: Scene, calls: tuple[TraceEvent, ...], example: Mapping[str, str]
) -> Finding | None:
    """The finding where no backward failed but the reading of a node's saved value, after these
    earlier calls of backward."""
    spot = scene.surfaced
    if scene.roots or spot is None or not isinstance(spot.node, ast.Attribute):
        return None
    if not spot.node.attr.startswith("_saved_") and spot.node.attr != "saved_tensors":
        return None
    first = calls[0] if len(calls) == 1 else None
    events = (scene.event(What.FREED, first), scene.failed())
    known = {
        **line_facts(first=None if first is None else first.place, failed=scene.place),
        "tensor": ast.unparse(spot.node.value),
        "failed": spot.text,
        "first_place": "" if first is None else label(first.place),
    }
    return Finding(
        cause="second_backward",
        confidence=Confidence.PROVEN,
        facts={name: known.get(name, "") for name in example},
        events=tuple(e for e in events if e is not None),
        variant=VARIANT,
    )
