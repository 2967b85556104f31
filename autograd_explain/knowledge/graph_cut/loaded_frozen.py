"""A call that gives a module frozen unless it is asked for one to train."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.facts.losing_call import called_object
from autograd_explain.inspect.scene import Scene

#: How arguments are called that are true for a module to train, and those that are true for one
#: that stays as it is.
_TRAINS = ("trainable", "requires_grad")
_FREEZES = ("freeze", "frozen")


@dataclass(frozen=True, eq=False)
class LoadedFrozen:
    """The call, and the argument of its that would leave the module to train."""

    call: ExprAt
    keyword: str
    value: str


def loaded_frozen(scene: Scene, modules: tuple[ExprAt, ...]) -> LoadedFrozen | None:
    """The call that made one of the modules: `PeftModel.from_pretrained(…)`,
    `nn.Embedding.from_pretrained(…)`."""
    makers = (maker for module in modules for maker in scene.slicer.makers(module))
    calls = (maker for maker in makers if isinstance(maker.node, ast.Call))
    found = (LoadedFrozen(c, *flag) for c in calls if (flag := _flag(scene, c)) is not None)
    return next(found, None)


def _flag(scene: Scene, call: ExprAt) -> tuple[str, str] | None:
    assert isinstance(call.node, ast.Call)
    given = {k.arg for k in call.node.keywords}
    found = [(n, v) for n, v in _flags(scene, call) if n not in given]
    return found[0] if len(found) == 1 else None


def _flags(scene: Scene, call: ExprAt) -> Iterator[tuple[str, str]]:
    """The arguments of what is called that freeze by their default, with the other value."""
    with suppress(ValueError, TypeError):
        for parameter in inspect.signature(called_object(scene, call)).parameters.values():
            words = _FREEZES if parameter.default is True else _TRAINS
            if isinstance(parameter.default, bool) and any(w in parameter.name for w in words):
                yield parameter.name, str(not parameter.default)
