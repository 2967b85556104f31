"""Warnings of our own looking, kept from the user without touching what Python has shown."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_warnings: Any = warnings


@contextmanager
def silenced() -> Iterator[None]:
    """Nothing in the body warns.

    `warnings.catch_warnings` counts as a change of the filters, after which Python shows again what
    it was to show once.
    """
    filters = warnings.filters
    _warnings.filters = [("ignore", None, Warning, None, 0)]
    try:
        yield
    finally:
        _warnings.filters = filters
