"""Values that came through the user's own decorators: wrappers, callable objects, closures.

A row is what stands before the function `f` of a tensor, and the line that lost the gradient.
"""

from __future__ import annotations

import pytest
from knowledge.played import play

from autograd_explain.model import What

HEAD = "import functools, torch\nfrom torch import nn\n"
PROGRAMS = {
    "a wrapper without a graph": (
        "def quiet(fn):\n    def wrapper(*args, **kwargs):\n        with torch.no_grad():\n"
        "            return fn(*args, **kwargs)\n    return wrapper\n"
        "@quiet\ndef f(v, k=2):\n    return v.exp() * k\n",
        "with torch.no_grad():",
    ),
    "one that keeps the name": (
        "def quiet(fn):\n    @functools.wraps(fn)\n    def wrapper(*args):\n"
        "        with torch.no_grad():\n            found = fn(*args)\n        return found * 1\n"
        "    return wrapper\n@quiet\ndef f(v):\n    return v.exp()\n",
        "with torch.no_grad():",
    ),
    "a cut in what is wrapped twice": (
        "def counted(fn):\n    @functools.wraps(fn)\n    def wrapper(*args, **kwargs):\n"
        "        return fn(*args, **kwargs)\n    return wrapper\n"
        "@counted\n@counted\ndef f(v):\n    return v.detach() * 2\n",
        "return v.detach() * 2",
    ),
    "a method": (
        "def counted(fn):\n    def wrapper(self, *args):\n        self.count = 1\n"
        "        return fn(self, *args)\n    return wrapper\n"
        "class Net(nn.Module):\n    @counted\n    def forward(self, v):\n"
        "        h = v.exp().detach()\n        return h * 2\nf = Net()\n",
        "h = v.exp().detach()",
    ),
    "a method whose wrapper names no object": (
        "def counted(fn):\n    def wrapper(*args):\n        return fn(*args)\n    return wrapper\n"
        "class Net(nn.Module):\n    @counted\n    def forward(self, v):\n"
        "        return v.data * 2\nf = Net()\n",
        "return v.data * 2",
    ),
    "a callable object": (
        "class Frozen:\n    def __init__(self, fn):\n        self.fn = fn\n"
        "    def __call__(self, *args, **kwargs):\n        with torch.inference_mode():\n"
        "            found = self.fn(*args, **kwargs)\n        return found.clone()\n"
        "@Frozen\ndef f(v):\n    return v * v\n",
        "with torch.inference_mode():",
    ),
    "a closure": (
        "def scaled(k):\n    def inner(v):\n        return k(v).detach()\n    return inner\n"
        "f = scaled(torch.exp)\n",
        "return k(v).detach()",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_line_that_lost_the_gradient_is_named(name: str) -> None:
    before, line = PROGRAMS[name]
    end = "w = torch.ones(3, requires_grad=True)\nloss = f(w).sum()\nloss.backward()"
    found = play((HEAD + before, end)).diagnosis
    assert found is not None
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source == line
