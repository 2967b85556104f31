"""A real IPython shell per test, with or without the extension."""

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import autograd_explain
from autograd_explain.intercept import guard


@pytest.fixture
def plain_shell() -> Iterator[InteractiveShell]:
    """A shell without the extension."""
    main, shown = sys.modules["__main__"], warnings.showwarning
    InteractiveShell.clear_instance()
    config = Config({"HistoryManager": {"hist_file": ":memory:"}})
    shell = InteractiveShell.instance(config=config)
    guard.clear()
    yield shell
    autograd_explain.unload_ipython_extension(shell)
    autograd_explain._last = None
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main
    assert warnings.showwarning is shown
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)


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
