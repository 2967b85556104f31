"""The method that takes back what another one of the same objects does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...isolation.type_checks import class_attribute
from ...model import Place
from ..scene import Scene

_PAIRS = (("disable", "enable"), ("enable", "disable"))


def opposite_method(scene: Scene, place: Place) -> str:
    """`untoggle_optimizer` for a statement that calls `toggle_optimizer`, `train` for `eval`,
    where the modules that have the one method have the other too; "" otherwise."""
    called = scene.program.statement_at(place)
    call = called.value if isinstance(called, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    if not isinstance(method, ast.Attribute):
        return ""
    kinds = {type(module) for _, module in scene.names.held_modules}
    owners = [kind for kind in kinds if class_attribute(kind, method.attr) is not None]
    for other in _opposites(method.attr) if owners else ():
        if all(class_attribute(kind, other) is not None for kind in owners):
            return other
    return ""


def _opposites(method: str) -> Iterator[str]:
    yield f"un{method}"
    if method == "eval":
        yield "train"
    for one, other in _PAIRS:
        if one in method:
            yield method.replace(one, other, 1)
