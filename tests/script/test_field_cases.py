"""Notebooks of the field as scripts: told as in the notebook, and all else as without us.

All of them, in both modes: `python tests/field/scripts.py`.
"""

from __future__ import annotations

import pytest
from field import scripts


@pytest.mark.parametrize("number", range(4))
def test_a_notebook_as_a_script_is_told_as_in_the_notebook(number: int) -> None:
    cases = scripts.cases_in([scripts.HERE / "cases"])
    mode = scripts.MODES[number % 2]
    (row,) = scripts.rows_of([cases[5 * number + 2]], (mode,))
    assert row.differences == {}
