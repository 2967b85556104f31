"""Golden files: what the screens showed when someone last looked; one switch renews them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden"
RENEW = bool(os.environ.get("AUTOGRAD_EXPLAIN_RENEW"))


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare with a golden file, or write it where AUTOGRAD_EXPLAIN_RENEW=1 is set."""

    def compare(name: str, text: str) -> None:
        path = FOLDER / name
        if RENEW:
            path.write_text(text, "utf-8")
        assert path.exists(), f"{name} is missing: run once with AUTOGRAD_EXPLAIN_RENEW=1"
        assert text == path.read_text("utf-8")

    return compare
