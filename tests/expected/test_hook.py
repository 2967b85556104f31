"""What a notebook's failure gives where nothing was recorded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from expected.frozen import Case, Compare


@pytest.mark.one_in(12)
def test_hook_mode(notebook: Case, as_expected: Compare) -> None:
    as_expected(notebook, "hook")


def test_nothing_is_left_over(none_left_over: Callable[[str], None]) -> None:
    none_left_over("hook")
