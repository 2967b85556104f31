"""What a conversion to numbers is told as, and rewritten to."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.inspect.facts.twins import _TWINS
from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

PACKAGE = """import torch
def blended(image, ratio):
    return _blend(image, image.mean(), ratio)
def _blend(first, second, ratio):
    ratio = float(ratio)
    return ratio * first + (1 - ratio) * second
def mixed(image, ratio):
    return ratio * image + (1 - ratio) * image.mean()
def faded(image, share):
    return share * image
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


MATRICES = """
import torch
a, b = (torch.tensor(v, requires_grad=True) for v in (0.3, 0.4))
def turned(points, width=2.0):
    ca, sa, cb = torch.cos(a), torch.sin(a), torch.cos(b)
    turn = torch.tensor([[ca, -sa], [sa, ca]])
    tilt = torch.tensor([[{}, 0.0], [0.0, 1.0]])
    return points @ turn @ tilt
# %%
loss = turned(torch.ones(3, 2)).sum()"""


@pytest.mark.parametrize(
    "element, together",
    [("cb * 2", True), ("b.cos()", True), ("cb.item()", False), ("width", False)],
)
def test_calls_like_it_in_the_function_change_together(element: str, together: bool) -> None:
    """torch warns once: the second matrix would go on without its gradient."""
    cells = cells_of(f"# %%{MATRICES.format(element)}")
    found = play(cells).diagnosis
    assert found is not None and found.finding.cause == "scalar_conversion"
    repaired = edited(cells, found.rewrites[0])
    values = run((*repaired, "loss.requires_grad and loss.backward()"))
    assert values["a"].grad is not None
    assert (values["b"].grad is not None) is together


def test_a_matrix_that_also_holds_a_number_by_name_has_no_rewrite() -> None:
    assert (
        play(
            (
                "import torch\nw = torch.ones(3, requires_grad=True)\nwidth = 0.5",
                "t = torch.tensor([[w[0], width], [0.0, w[1]]])",
            )
        ).diagnosis.rewrites
        == ()
    )


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


@pytest.mark.parametrize(("name", "called"), [("mixed", True), ("faded", False)])
def test_the_function_of_the_library_that_keeps_the_graph(
    name: str, called: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that takes no such argument is not it."""
    monkeypatch.setitem(_TWINS, ("photo", "blended"), f"photo.{name}")
    step = STEP.format("photo.blended(w * x, ratio=log_ratio.exp())")
    with installed(tmp_path, "photo", PACKAGE):
        found = play((START, step)).diagnosis
        assert found is not None and bool(found.rewrites) is called
        if called:
            repaired = edited((START, step), found.rewrites[0])
            assert "photo.mixed(w * x, ratio=log_ratio.exp())" in repaired[1]
            assert run(repaired)["log_ratio"].grad is not None


@pytest.mark.parametrize("computed", ["photo.normed(w * x)", "photo.blended(w * x, 0.5)"])
def test_a_number_that_is_the_librarys_own(tmp_path: Path, computed: str) -> None:
    with installed(tmp_path, "photo", PACKAGE):
        assert play((START, STEP.format(computed))).diagnosis is None
