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


@contextmanager
def overheard() -> Iterator[list[str]]:
    """What warns in the body, each time; nothing is shown."""
    heard: list[str] = []
    filters, show = warnings.filters, warnings.showwarning
    _warnings.filters = [("always", None, Warning, None, 0)]
    _warnings.showwarning = lambda message, *rest, **named: heard.append(str(message))
    try:
        yield heard
    finally:
        _warnings.filters, _warnings.showwarning = filters, show
