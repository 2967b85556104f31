"""Losses that depend on the phase of an eigenvector: what would cancel it lost its gradient."""

from __future__ import annotations

import pytest
from knowledge.played import explained

from autograd_explain.model import What

BEGIN = """import torch
torch.manual_seed(0)
A = torch.randn(4, 4, requires_grad=True)
"""
CUT = {
    "a function that does not record": (
        "@torch.no_grad()\ndef weights(v):\n    return torch.linalg.solve(v, b)\n"
        "b = torch.ones(4, dtype=torch.cfloat)\n",
        "@torch.no_grad()",
    ),
    "a detached basis": (
        "def weights(v):\n    return torch.linalg.solve(v.detach(), b)\n"
        "b = torch.ones(4, dtype=torch.cfloat)\n",
        "return torch.linalg.solve(v.detach(), b)",
    ),
}


@pytest.mark.parametrize("name", CUT)
def test_what_is_computed_of_the_vectors_without_gradient_is_told(name: str) -> None:
    text, line = CUT[name]
    use = "values, vectors = torch.linalg.eig(A)\nw = weights(vectors)\n"
    use += "(vectors @ (w * values)).real.square().sum().backward()\n"
    finding = explained((BEGIN + text, use)).finding
    place, made = finding.place(What.CAUSE), finding.place(What.CREATED)
    assert finding.cause == "linalg_undefined" and "vectors" in finding.tensors[0].names
    assert place is not None and place.source.strip() == line
    assert made is not None and made.source == "values, vectors = torch.linalg.eig(A)"


def test_vectors_that_lost_nothing_are_told_alone() -> None:
    use = """vectors = torch.linalg.eig(A)[1]
print(vectors[:, 0].real.sum().detach())
loss = vectors.real.square().sum() + A.detach().sum()
loss.backward()
"""
    finding = explained((BEGIN, use)).finding
    assert finding.cause == "linalg_undefined" and finding.tensors[0].names == ("vectors",)
    assert finding.place(What.CAUSE) is None
