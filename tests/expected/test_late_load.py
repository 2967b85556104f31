"""A failure that was there when the extension was loaded is explained as if it had been loaded."""

from __future__ import annotations

import re

import pytest
from expected.frozen import Case, blocks, file_of, in_every_run, lines_of, notebooks
from sessions import run_and_load

_ERROR = re.compile(r"^In\[\d+\] error .*(?:\n  .*)*", re.MULTILINE)


def error_of(notebook: Case) -> str:
    """What is expected of the notebook's error, "" where it raises none that is explained."""
    found = _ERROR.search(blocks(file_of(notebook.family, "hook"))[notebook.name])
    return found[0].strip() if found else ""


def chosen() -> list[Case]:
    """The field's own cases, and a sixth of the causes'."""
    some = [n for n in notebooks() if n.family == "causes" and in_every_run(n)]
    return [n for n in (*(n for n in notebooks() if n.family == "cases"), *some) if error_of(n)]


@pytest.mark.parametrize("failing", chosen(), ids=str)
def test_as_if_it_had_been_loaded(failing: Case) -> None:
    found = "\n".join(lines_of(run_and_load(failing.cells)))
    assert found.strip() == error_of(failing)
