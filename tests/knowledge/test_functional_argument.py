"""Arguments of `torch.autograd.functional`: the one that does not fit is marked."""

from __future__ import annotations

import pytest
from knowledge.played import explained

from autograd_explain.model import What

SETUP = "import torch\nfrom torch.autograd.functional import hvp, jvp, vhp, vjp\nx = torch.ones(2)"


@pytest.mark.parametrize(
    "call",
    [
        "vhp(lambda x: x.sum(), x, (x, x))",
        "hvp(lambda x: x.sum(), x, (x, x))",
        "vjp(lambda x: x * 2, x, v=(x, x))",
        "jvp(lambda x: x * 2, x, (x, x), strict=False)",
    ],
)
def test_a_vector_that_does_not_fit_is_marked(call: str) -> None:
    finding = explained((SETUP, call)).finding
    assert finding.cause == "functional_argument" and finding.variant == "vector"
    place = finding.place(What.CAUSE)
    assert place is not None and place.span is not None
    assert call[place.span.column : place.span.end_column] == "(x, x)"
