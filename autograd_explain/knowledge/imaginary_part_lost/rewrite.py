"""Keep both parts, or say which one is meant."""

from __future__ import annotations

from collections.abc import Iterator

from autograd_explain.model import Finding
from autograd_explain.program import Program
from autograd_explain.rewrite import Proposal, differing
from autograd_explain.rewrite.transforms.call_edits import expression_replaced, keyword_set

from .diagnose import Details


def propose(finding: Finding[Details], program: Program) -> Iterator[Proposal]:
    details = finding.details
    real = expression_replaced(program, details.value, "{x}.real")
    magnitude = expression_replaced(program, details.value, "{x}.abs()")
    made = details.made
    whole = (
        None if made is None else keyword_set(program, made, "dtype", f"{{torch}}.{details.dtype}")
    )
    meant = [Proposal("real", real)] if real else []
    if not details.written or details.back:
        yield from meant
    # A buffer that lost half of what was written into it hardly means that.
    corrects = details.written and not details.back
    yield from differing("complex_buffer", whole, corrects)
    yield from differing("magnitude", magnitude, corrects)
    if corrects:
        yield from meant
