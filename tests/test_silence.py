"""What Python has shown once it does not show again because we have looked at something."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from autograd_explain.inspect.shadow.isolation import undisturbed
from autograd_explain.isolation.silence import silenced
from autograd_explain.rewrite.engine.draft import compiles

LOOKS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "silenced": silenced,
    "undisturbed": undisturbed,
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
