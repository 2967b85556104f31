"""Old or slow form of a function transform."""

import ast
from dataclasses import dataclass

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding, Place

PATTERNS = (
    "functorch-module-deprecated",
    "vmap-slow-fallback",
    "legacy-vmap-warning",
    "jacobian-vectorize-fallback",
)

EXAMPLE = {
    "api": "vmap",
    "replacement": "torch.vmap",
    "op": "",
    "call": "functorch.vmap(weighted)",
}

VARIANTS = {
    "functorch-module-deprecated": "moved",
    "vmap-slow-fallback": "slow",
    "jacobian-vectorize-fallback": "slow",
}


@dataclass(frozen=True)
class Details:
    """What the rewrites go by."""

    call: Place | None = None  #: of a function of `functorch`
    replacement: str = ""  #: its name in torch


def diagnose(scene: Scene) -> Finding[Details] | None:
    told = finding_from_message(scene, "func_old_api", EXAMPLE, VARIANTS)
    call, new = _moved(scene), told.facts["replacement"]
    moved = told.variant == "moved" and new.startswith("torch.")
    return told.with_details(Details(call, new) if moved else Details())


def _moved(scene: Scene) -> Place | None:
    """`functorch.vmap(f)`, also of `functorch.vmap(f)(x)`."""
    spot = scene.surfaced
    inner = None if spot is None or spot.callable is None else spot.callable
    calls = [s for s in (inner, spot) if s is not None and isinstance(s.node, ast.Call)]
    function = calls[0].callable if calls else None
    moved = function is not None and function.text.startswith("functorch.")
    return scene.place_at(calls[0]) if moved else None
