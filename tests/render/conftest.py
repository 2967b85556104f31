"""Golden files: what the screens showed when someone last looked; one switch renews them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare with a golden file, or write it under --renew-expected."""

    def compare(name: str, text: str) -> None:
        path = FOLDER / name
        if request.config.getoption("--renew-expected"):
            path.write_text(text, "utf-8")
        assert path.exists(), f"{name} is missing: run once with --renew-expected"
        assert text == path.read_text("utf-8")

    return compare
