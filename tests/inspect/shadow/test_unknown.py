"""What NumPy makes of values that are not known."""

from __future__ import annotations

from collections.abc import Callable

import numpy
import pytest

from autograd_explain.inspect.shadow.unknown import UNKNOWN, Unknown


@pytest.mark.parametrize(
    "call",
    [
        lambda value: numpy.concatenate([value, value]),
        lambda value: numpy.clip(5 * value, -1, 1),
        lambda value: numpy.ones(2) + value,
        numpy.mean,
    ],
)
def test_a_function_of_what_is_not_known_is_not_known(call: Callable[[Unknown], object]) -> None:
    assert call(UNKNOWN) is UNKNOWN


@pytest.mark.parametrize("given", [UNKNOWN, [UNKNOWN, UNKNOWN]])
def test_no_array_is_made_of_it(given: object) -> None:
    """As a sequence of sequences it would have 2 ** 64 elements."""
    with pytest.raises(TypeError, match="not known"):
        numpy.array(given)
