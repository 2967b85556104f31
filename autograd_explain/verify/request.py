"""What is to be verified, and with which reference."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..model import Kind
from ..program import Program
from .plan import Reference

if TYPE_CHECKING:
    from .checkpoint import Checkpoint


@dataclass(frozen=True, eq=False)
class Request:
    """A failure whose rewrites are to be tried.

    `program` holds every cell that ran, `cell` is the number of the one that failed (or, for a
    silent finding, that went wrong) and `message` what torch said (`str(exception)`; the text
    of the warning; "" for silent).  `failed` are the earlier cells that had ended with an error,
    `durations` the seconds that cells took, where known: they save hopeless replays.
    `checkpoint` is the one taken before the failing cell, if any.  `seconds` and `megabytes`
    bound the whole verification and the memory growth of one replay.  `awaited` are names of
    tensors that have to get a gradient.
    """

    program: Program
    cell: int
    message: str = ""
    kind: Kind = Kind.ERROR
    reference: Reference = Reference.NONE
    checkpoint: Checkpoint | None = None
    failed: frozenset[int] = frozenset()
    durations: Mapping[int, float] = field(default_factory=dict)
    seconds: float = 20.0
    megabytes: int = 2048
    awaited: tuple[str, ...] = ()


_VERSION = re.compile(r"has been modified by an in-?place operation|modified by an inplace")
_TWICE = re.compile(r"backward through the graph a second time|access saved \w+ after they have")


_REFUSED = re.compile(
    r"leaf Variable that requires grad (?:is being used|has been used) in an in-place operation"
    r"|is a view and is being modified in-?place"
    r"|view was created in (?:no_grad|inference) mode and is being modified in-?place"
    r"|Can't call numpy\(\) on (?:Tensor|Variable) that requires grad"
    r"|can't optimize a non-leaf Tensor"
)
_NO_GRADIENT = re.compile(r"The \.grad attribute of a Tensor that is not a leaf")


def reference_for(kind: Kind, message: str, overwritten: bool = False) -> Reference:
    """The reference that fits a message; `overwritten` says that a silent finding is about a
    value which was overwritten after it had been saved."""
    if kind is Kind.SILENT:
        return Reference.SAVED_VALUES if overwritten else Reference.NONE
    if kind is Kind.ERROR and _VERSION.search(message):
        return Reference.SAVED_VALUES
    if kind is Kind.ERROR and _TWICE.search(message):
        return Reference.RETAINED_GRAPH
    if kind is Kind.ERROR and _REFUSED.search(message):
        return Reference.LENIENT
    if kind is Kind.WARNING and _NO_GRADIENT.search(message):
        return Reference.RETAINED_GRADIENTS
    return Reference.NONE
