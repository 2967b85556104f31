"""Random draws and nearest pixels in a loss: their derivative is 0."""

from __future__ import annotations

import pytest
from knowledge.played import edited, play
from notebook import run_cells
from watching import signals

from autograd_explain.model import ZeroBy

HEAD = """\
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
enc, dec = nn.Linear(4, 4), nn.Linear(2, 4)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.1)
x, goal = torch.randn(8, 4), torch.randn(8, 2)
"""
LOOP = (
    "for _ in range(2):\n    opt.zero_grad()\n    mean, log_std = enc(x).chunk(2, -1)\n"
    "    std = log_std.exp()\n    {}\n    loss.backward()\n    opt.step()"
)
KL = "(mean.pow(2) + std.pow(2) - log_std).mean()"
DRAWN = {
    "normal": f"z = torch.normal(mean, std)\n    loss = (dec(z) - x).pow(2).mean() + {KL}",
    "gates": f"g = torch.bernoulli(mean.sigmoid())\n    loss = (dec(g) - x).pow(2).mean() + {KL}",
}
DENSITY = "-(0.5 * ((a - mean) / std) ** 2 + log_std)"
WEIGHED = {
    "a density by hand": f"a = torch.normal(mean, std)\n    r = -(a.detach() - goal).pow(2)\n"
    f"    loss = -(({DENSITY}) * r).mean() + 0.1 * log_std.mean()",
    "a density of torch's": "a = torch.normal(mean, std)\n    r = -(a - goal).pow(2).detach()\n"
    "    loss = -(torch.distributions.Normal(mean, std).log_prob(a) * r).mean()",
    "a draw that is detached": "z = torch.normal(mean.detach(), std.detach())\n"
    f"    loss = (dec(z) - x).pow(2).mean() + {KL}",
    "noise": f"z = mean + std * torch.randn_like(mean)\n    loss = dec(z).mean() + {KL}",
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_draw_that_other_terms_lead_past(name: str) -> None:
    (found,) = signals((HEAD, LOOP.format(DRAWN[name])))
    assert (found.name, found.evidence["by"]) == ("zero-gradient", ZeroBy.DRAW)
    assert found.moments["operation"][0].place.line == 5


@pytest.mark.parametrize("name", WEIGHED)
def test_a_draw_that_needs_no_gradient(name: str) -> None:
    assert signals((HEAD, LOOP.format(WEIGHED[name]))) == []


SHIFT = HEAD + (
    "shift, gain = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.ones(1))\n"
    "image, wanted = torch.rand(1, 1, 6, 6), torch.rand(1, 1, 6, 6)\n"
    "opt = torch.optim.SGD([shift, gain], lr=0.1)"
)
MOVED = (
    "for _ in range(2):\n    opt.zero_grad()\n"
    "    theta = torch.cat([torch.eye(2), shift[:, None]], 1)[None]\n"
    "    grid = F.affine_grid(theta, image.shape, align_corners=False)\n"
    '    out = gain * F.grid_sample(image, grid, mode="{}", align_corners=False)\n'
    "    (out - wanted).pow(2).mean().backward()\n    opt.step()"
)


def test_the_position_of_the_nearest_pixel() -> None:
    (found,) = signals((SHIFT, MOVED.format("nearest")))
    assert found.name == "zero-gradient" and found.evidence["count"] == 1
    assert signals((SHIFT, MOVED.format("bilinear"))) == []


def test_what_is_sampled_gets_a_gradient() -> None:
    cell = MOVED.replace("image, grid", "image * gain, grid").replace("shift[:", "shift.detach()[:")
    assert signals((SHIFT.replace("[shift, gain]", "[gain]"), cell.format("nearest"))) == []


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        ((HEAD, LOOP.format(DRAWN["normal"])), "    z = mean + std * torch.randn_like(mean)"),
        ((SHIFT, MOVED.format("nearest")), 'mode="bilinear"'),
    ],
)
def test_the_first_rewrite(cells: tuple[str, ...], line: str) -> None:
    watched = (cells[0], "%%autograd_check --no-verify\n" + cells[1])
    found = play(watched).diagnosis
    assert found is not None and found.rewrites
    new = edited(watched, found.rewrites[0])
    assert line in new[1]
    run_cells((new[0], new[1].partition("\n")[2]))
