"""A silent finding, as the recorder hands it on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..inspect.history import TraceEvent


@dataclass(frozen=True)
class Signal:
    """Something wrong that raised nothing; `name` is what knowledge entries list in PATTERNS.

    `moments` are the lines by role ("saved", "changed", "cut", "backward", "step" …), the guilty
    one first in its role.  `evidence` is plain data; tensors appear as weak references.
    """

    name: str
    moments: Mapping[str, tuple[TraceEvent, ...]] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
