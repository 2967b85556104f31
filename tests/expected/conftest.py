"""What every notebook is expected to give; `--renew-expected` writes it anew."""

from __future__ import annotations

import difflib
from collections.abc import Callable

import pytest
from expected.frozen import (
    Case,
    Compare,
    block,
    blocks,
    file_of,
    in_every_run,
    notebooks,
    write,
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Under check a sixth of the notebooks, unless all are asked for."""
    if "notebook" in metafunc.fixturenames:
        config = metafunc.config
        everything = config.getoption("--all-notebooks") or config.getoption("--renew-expected")
        some = metafunc.module.__name__.endswith("check") and not everything
        chosen = [n for n in notebooks() if not some or in_every_run(n)]
        metafunc.parametrize("notebook", chosen, ids=str)


@pytest.fixture
def as_expected(request: pytest.FixtureRequest) -> Compare:
    """Compare with the notebook's block, or write it."""

    def compare(notebook: Case, mode: str) -> None:
        path, found = file_of(notebook.family, mode), block(notebook, mode)
        known = blocks(path)
        if request.config.getoption("--renew-expected"):
            write(path, {**known, notebook.name: found})
            return
        old = known.get(notebook.name, "").splitlines()
        changes = difflib.unified_diff(old, found.splitlines(), "expected", "now", lineterm="")
        shown = "\n".join(changes)
        if shown:
            pytest.fail(f"{notebook} under {mode}:\n{shown}", pytrace=False)

    return compare


@pytest.fixture
def none_left_over(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Every block belongs to a notebook."""

    def compare(mode: str) -> None:
        known: dict[str, set[str]] = {}
        for notebook in notebooks():
            known.setdefault(notebook.family, set()).add(notebook.name)
        for path in sorted(file_of("", mode).parent.glob("*.txt")):
            found = blocks(path)
            kept = {n: text for n, text in found.items() if n in known.get(path.stem, ())}
            if request.config.getoption("--renew-expected"):
                write(path, kept) if kept else path.unlink()
            else:
                assert found.keys() == kept.keys(), path.name

    return compare
