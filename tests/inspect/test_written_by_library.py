"""A leaf that code of an installed package writes in place: told at the user's call of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from knowledge.played import edited, explained
from notebook import installed, run_cells

from autograd_explain.model import Role, What
from autograd_explain.render.topic_content import cells_of

LIBRARY = """\
import torch

class Normalize:
    def __init__(self, mean):
        self.mean = mean
    def __call__(self, image):
        return scaled(image, self.mean)

class Mix:
    def __call__(self, image, label):
        image.mul_(0.5)
        return image, label

class Net(torch.nn.Module):
    def forward(self, image):
        return image * image

def scaled(image, mean):
    mean = torch.as_tensor(mean)
    return image[0].sub_(mean) if image.dim() == 3 else image.sub_(mean)
"""
CELLS = """# %%
import torch
from somelib import *
# %%
class Attack:
    def __init__(self, prepare):
        self.prepare = prepare
    def run(self, image):
        image = image.clone().requires_grad_()
        self.prepare(image).square().sum().backward()
        return image.grad
# %%
found = Attack({prepare}).run({image})
"""


@pytest.fixture(autouse=True)
def library(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path, "somelib", LIBRARY):
        yield


@pytest.mark.parametrize("prepare", ["Normalize(0.5)", "lambda i: scaled(i, 0.5)"])
@pytest.mark.parametrize(
    ("image", "cause"),
    [("torch.ones(2)", "leaf_written"), ("torch.ones(2, 2, 2)", "view_of_leaf_written")],
)
def test_named_at_the_users_call_and_given_a_copy(prepare: str, image: str, cause: str) -> None:
    cells = cells_of(CELLS.replace("{prepare}", prepare).replace("{image}", image))
    diagnosis = explained(cells)
    assert diagnosis.finding.cause == cause
    culprit = diagnosis.finding.tensor(Role.CULPRIT)
    assert culprit is not None and {"image", "i"}.intersection(culprit.names)
    place = diagnosis.finding.place(What.CHANGED)
    assert place is not None and ("prepare" in place.source or "scaled" in place.source)
    assert run_cells(edited(cells, diagnosis.rewrites[0]))["found"] is not None


def test_of_several_arguments_the_written_one_is_copied() -> None:
    """The call before had another number of arguments."""
    cells = """# %%
import torch
from somelib import *
net, mix, w = Net(), Mix(), torch.ones(3, requires_grad=True)
def clean(image, label):
    return (net(image) * w).sum()
def mixed(image, label):
    image, label = mix(image, label)
    return (image * w * label).sum()
def train():
    for x, y in [(torch.rand(3), torch.ones(3))]:
        loss = clean(x, y) + (x * w).sum() + mixed(x, y)
        loss.backward()
        return w.grad
# %%
found = train()
"""
    diagnosis = explained(cells_of(cells))
    assert "mix(image.clone(), label)" in diagnosis.rewrites[0].edits[0].new_source
    assert run_cells(edited(cells_of(cells), diagnosis.rewrites[0]))["found"] is not None
