"""What cut the graph taken out of an expression, its copies kept."""

from __future__ import annotations

import pytest
from rewriting import program_of, spot

from autograd_explain.rewrite.transforms.uncut import apply_patches, without_cut

UNCUT = {
    "x.detach().numpy()": "x",
    "x.data.clone()": "x.clone()",
    "x.detach().clone()": "x.clone()",
    "x.data.clone().numpy()": "x.clone()",
    "(a + b).detach().clone()": "(a + b).clone()",
    "float(x)": "x",
    "np.sqrt(x)": "torch.sqrt(x)",
    "np.maximum(x, 0.5)": "torch.maximum(x, torch.as_tensor(0.5))",
}


@pytest.mark.parametrize("cut", UNCUT)
def test_without_cut(cut: str) -> None:
    program = program_of(f"y = {cut} * 2")
    edits = apply_patches(without_cut(program, spot(program, cut)))
    assert edits is not None and edits[0].new_source == f"y = {UNCUT[cut]} * 2"


def test_a_copy_that_cuts_nothing_stays() -> None:
    program = program_of("y = x.clone()")
    assert without_cut(program, spot(program, "x.clone()")) == []
