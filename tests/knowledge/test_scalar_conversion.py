"""What a conversion to numbers is told as, and rewritten to."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import play
from notebook import installed

from autograd_explain.model import What

PACKAGE = """import torch
def blended(image, ratio):
    return _blend(image, image.mean(), ratio)
def _blend(first, second, ratio):
    ratio = float(ratio)
    return ratio * first + (1 - ratio) * second
def normed(image):
    return image / float(image.norm())
"""
START = """import torch, photo
x = torch.rand(4)
w = torch.nn.Parameter(torch.ones(4))
log_ratio = torch.nn.Parameter(torch.zeros(()))
optimizer = torch.optim.SGD([w, log_ratio], lr=0.1)"""
STEP = "loss = {}.sum()\nloss.backward()\noptimizer.step()"


def test_a_list_under_a_name_that_also_holds_numbers_has_no_rewrite() -> None:
    """`torch.stack` takes tensors alone, and a list has no `.detach()`."""
    start = "import torch\nw = torch.ones(3, requires_grad=True)"
    found = play((start, "terms = [w.sum(), 0.5]\nt = torch.tensor(terms)")).diagnosis
    assert found is not None
    assert (found.finding.cause, found.finding.variant) == ("scalar_conversion", "list")
    assert not found.rewrites


@pytest.mark.parametrize("watched", [False, True])
def test_a_number_that_a_library_takes(tmp_path: Path, watched: bool) -> None:
    """torch warns at the library's line: what was lost is the program's."""
    step = STEP.format("photo.blended(w * x, ratio=log_ratio.exp())")
    with installed(tmp_path, "photo", PACKAGE) as file:
        found = play((START, step), watched=watched).diagnosis
    assert found is not None and found.message.startswith("Converting a tensor")
    cause = found.finding.event(What.CAUSE)
    assert cause is not None and cause.place is not None and cause.inside is not None
    assert (cause.place.cell, cause.place.line) == (2, 1)
    assert (cause.inside.file, cause.inside.line) == (str(file), 5)
    assert "log_ratio" in found.finding.tensors[0].names
    assert found.finding.cause == ("silent_cut" if watched else "scalar_conversion")
    assert not found.rewrites


@pytest.mark.parametrize("computed", ["photo.normed(w * x)", "photo.blended(w * x, 0.5)"])
def test_a_number_that_is_the_librarys_own(tmp_path: Path, computed: str) -> None:
    with installed(tmp_path, "photo", PACKAGE):
        assert play((START, STEP.format(computed))).diagnosis is None
