"""Keep both parts, or say which one is meant."""

from __future__ import annotations

from collections.abc import Iterator

from autograd_explain.model import Finding
from autograd_explain.program import Program
from autograd_explain.rewrite import Proposal, differing, same
from autograd_explain.rewrite.transforms.spot import Spot

from .diagnose import Details


def propose(finding: Finding[Details], program: Program) -> Iterator[Proposal]:
    details = finding.details
    value, made = Spot(program, details.value), Spot(program, details.made)
    real, magnitude = value.replaced("{x}.real"), value.replaced("{x}.abs()")
    whole = made.given("dtype", f"{{torch}}.{details.dtype}")
    meant = list(same("real", real))
    if not details.written or details.back:
        yield from meant
    # A buffer that lost half of what was written into it hardly means that.
    corrects = details.written and not details.back
    yield from differing("complex_buffer", whole, corrects)
    yield from differing("magnitude", magnitude, corrects)
    if corrects:
        yield from meant
