"""`torch.autograd.grad(…)` told that an input may be unused, and what to give for it then."""

from __future__ import annotations

import ast
from dataclasses import replace

from ..model import Edit, Place
from ..program import Program
from .uncut import apply_patches, keyword_added


def unused_allowed(program: Program, place: Place) -> tuple[Edit, ...] | None:
    """`allow_unused=True` in the innermost call of `grad` around the expression at the span."""
    source, span = program.source_at(place), place.span
    if source is None or span is None:
        return None
    around = []
    for node in ast.walk(source.tree):
        name = getattr(node, "func", None)
        if isinstance(node, ast.Call) and getattr(name, "attr", getattr(name, "id", "")) == "grad":
            own = source.span(node)
            if own is not None and (own.line, own.column) <= (span.line, span.column):
                if (span.end_line, span.end_column) <= (own.end_line, own.end_column):
                    around.append((node, own))
    if not around:
        return None
    node, own = around[-1]
    if any(k.arg == "allow_unused" for k in node.keywords):
        return None
    return apply_patches(keyword_added(program, replace(place, span=own), "allow_unused", "True"))
