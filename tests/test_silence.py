"""What Python has shown once it does not show again because we have looked at something."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from autograd_explain.inspect.shadow.isolation import undisturbed
from autograd_explain.intercept.idle import Idle
from autograd_explain.isolation.silence import overheard, silenced
from autograd_explain.knowledge.copying_tensors.table import rows
from autograd_explain.rewrite.engine.draft import compiles


class _Loop:
    """Calls back at once."""

    def call_later(self, seconds: float, callback: Callable[[], None]) -> None:
        callback()


def _load_while_idle() -> AbstractContextManager[Any]:
    kernel = SimpleNamespace(io_loop=_Loop())
    Idle(SimpleNamespace(kernel=kernel), lambda: iter([None]), bool).begin()
    return nullcontext()


LOOKS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "silenced": silenced,
    "undisturbed": undisturbed,
    "idle": _load_while_idle,
    "overheard": overheard,
    "a computed table": lambda: nullcontext(all(rows())),
    "compiles": lambda: nullcontext(compiles("x = 1 is 1")),
}


@pytest.mark.parametrize("look", LOOKS)
def test_once_is_once(look: str) -> None:
    registry: dict[Any, Any] = {}
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(3):
            warnings.warn_explicit("mine", UserWarning, "cell", 1, registry=registry)
            with LOOKS[look]():
                pass
    assert [str(w.message) for w in shown] == ["mine"]


def test_nothing_warns() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with silenced():
            warnings.warn("ours", stacklevel=1)
        warnings.warn("theirs", stacklevel=1)
    assert [str(w.message) for w in shown] == ["theirs"]


def test_what_warns_is_heard() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with overheard() as heard:
            for _ in range(2):
                warnings.warn("ours", stacklevel=1)
    assert (heard, shown) == (["ours", "ours"], [])
