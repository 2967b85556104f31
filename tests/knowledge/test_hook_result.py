"""Hooks whose result is no gradient: what is meant is told by how they compute it.

A row is a notebook's hook and registration, the variant, and the lines the rewrite brings in.
"""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, explained
from knowledge.test_cases import run

from autograd_explain.render.topic_content import cells_of

START = "# %%\nimport torch\nfrom torch import nn\ntorch.manual_seed(0)\nseen = []\n# %%\n"
END = (
    "\n# %%\nx = torch.rand(4, 3, requires_grad=True)\nh = x * 2\n{register}\nh.sum().backward()\n"
)
PROGRAMS: dict[str, tuple[str, str, str, list[str]]] = {
    "mean over the batch": (
        "def smooth(g):\n    avg = g.mean(0)\n    return 0.5 * avg",
        "h.register_hook(smooth)",
        "size",
        ["avg = g.mean(0, keepdim=True)", "return (0.5 * avg).expand_as(g)"],
    ),
    "reduced in the returned expression": (
        "def smooth(g):\n    return torch.mean(g, dim=1) * 2",
        "h.register_hook(smooth)",
        "size",
        ["return (torch.mean(g, dim=1, keepdim=True) * 2).expand_as(g)"],
    ),
    "lambda that sums": (
        "pass",
        "h.register_hook(lambda g: g.sum(dim=1))",
        "size",
        ["h.register_hook(lambda g: g.sum(dim=1, keepdim=True).expand_as(g))"],
    ),
    "method that flattens": (
        "class Clip:\n    def apply(self, grad):\n        flat = grad.flatten()\n"
        "        return flat.clamp(-1, 1)",
        "h.register_hook(Clip().apply)",
        "size",
        ["return flat.clamp(-1, 1).reshape_as(grad)"],
    ),
    "norm of everything": (
        "def size(g):\n    return g.norm()",
        "h.register_hook(size)",
        "size",
        [],
    ),
    "two reductions": (
        "def odd(g):\n    return g.mean(0).sum(0)",
        "h.register_hook(odd)",
        "size",
        [],
    ),
    "number that is logged": (
        "def log(g):\n    seen.append(g.norm())\n    return g.norm().item()",
        "h.register_hook(log)",
        "kind",
        ["return"],
    ),
    "number and nothing else": (
        "def size(g):\n    return g.norm().item()",
        "h.register_hook(size)",
        "kind",
        [],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_hook(name: str) -> None:
    text, register, variant, lines = PROGRAMS[name]
    cells = cells_of(START + text + END.format(register=register))
    diagnosis = explained(cells)
    finding, rewrites = diagnosis.finding, diagnosis.rewrites
    assert (finding.cause, finding.variant) == ("hook_result", variant)
    assert finding.tensors[0].names[0] == "h"
    if not lines:
        assert not rewrites
        return
    repaired = edited(cells, rewrites[0])
    assert added(cells, repaired) == lines
    run(repaired)
