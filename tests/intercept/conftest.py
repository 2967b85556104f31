"""A real IPython shell per test, with or without the extension."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from notebook import kernel_shell

import autograd_explain


@pytest.fixture
def plain_shell() -> Iterator[InteractiveShell]:
    """A shell without the extension."""
    with kernel_shell(xmode="Context") as shell:
        yield shell


@pytest.fixture
def shell(plain_shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    """A shell with the extension loaded, in English."""
    monkeypatch.setenv("AUTOGRAD_EXPLAIN_LANG", "en")
    plain_shell.extension_manager.load_extension("autograd_explain")
    return plain_shell


@pytest.fixture
def run(shell: InteractiveShell) -> Callable[[str], Any]:
    """Run a cell as a user would: with history."""
    return lambda text: shell.run_cell(text, store_history=True)


@pytest.fixture
def session(shell: InteractiveShell) -> Any:
    return autograd_explain._session
