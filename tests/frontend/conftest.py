"""A browser for the tests of what the user sees.

Without one they are skipped, and say so; where AUTOGRAD_EXPLAIN_BROWSER=required is set (the CI
does) they fail.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import lab
import pytest
from playwright.sync_api import Browser, Page


def _need(there: object, what: str) -> None:
    if there:
        return
    if os.environ.get("AUTOGRAD_EXPLAIN_BROWSER") == "required":
        pytest.fail(f"{what} is missing, and this run must have it", pytrace=False)
    pytest.skip(f"{what} is not installed: the front end is NOT tested")


@pytest.fixture(scope="module")  # while it is open, Playwright's event loop runs in this thread
def browser() -> Iterator[Browser]:
    _need(lab.chromium(), "Chromium")
    with lab.browser() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    made = browser.new_page(viewport={"width": 1000, "height": 900})
    yield made
    made.close()


@pytest.fixture
def notebook_7(tmp_path: Path) -> Iterator[lab.Lab]:
    _need(lab.chromium(), "Chromium")
    installed = [*importlib.metadata.distributions(name="notebook")]
    _need(installed, "Notebook 7")  # a module of the tests has its name
    (tmp_path / "books").mkdir()
    with lab.jupyter_lab(tmp_path / "books", tmp_path, app="notebook") as running:
        yield running


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Lab]:
    _need(lab.chromium(), "Chromium")
    _need(importlib.util.find_spec("jupyterlab"), "JupyterLab")
    folder: Path = tmp_path_factory.mktemp("books")
    with lab.jupyter_lab(folder, tmp_path_factory.mktemp("home")) as running:
        yield running
