"""A forward hook that writes its output made one that returns a new one."""

from __future__ import annotations

import pytest
import torch
from rewriting import cell, rewritten, run

from autograd_explain.knowledge.saved_value_overwritten.hook_output import returned_from_hook

SETUP = """
net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1))
with torch.no_grad():
    for p in net.parameters():
        p.fill_(0.3)
x, log = torch.ones(2, 3), {}
"""

HOOKS = {
    "function": """
        def limit(module, inputs, out):
            log["mean"] = out.mean().item()
            out.clamp_(max=0.6)
        net[1].register_forward_hook(limit)
        """,
    "made by a function": """
        def make(limit):
            def hook(module, args, kwargs, out):
                if limit is None:
                    return
                out.sub_(0.1)
                out *= limit  # both
            return hook
        made = make(0.5)
        net[1].register_forward_hook(made, with_kwargs=True)
        """,
    "method": """
        class Probe:
            def attach(self, module):
                module.register_forward_hook(self.hook)
            def hook(self, module, inputs, output):
                output[output > 0.5] = 0.0
        Probe().attach(net[1])
        """,
    "partial": """
        from functools import partial
        def scale(by, module, inputs, out):
            out.mul_(by)
        for m in net:
            if isinstance(m, nn.Sigmoid):
                m.register_forward_hook(partial(scale, 2.0))
        """,
}


@pytest.mark.parametrize("name", HOOKS)
def test_same_values_and_a_gradient(name: str) -> None:
    code = cell(HOOKS[name])
    needle, out = {
        "function": ("clamp_", "out"),
        "made by a function": ("sub_", "out"),
        "method": ("output[output", "output"),
        "partial": ("mul_", "out"),
    }[name]
    text = rewritten(returned_from_hook, code, needle, out)
    assert text is not None and f"return {out}\n" in text
    before, after = run(SETUP, code), run(SETUP, text)
    torch.testing.assert_close(before["net"](before["x"]), after["net"](after["x"]))
    after["net"](after["x"]).sum().backward()


@pytest.mark.parametrize(
    "code",
    [
        "def limit(module, inputs, out):\n    out.mul_(2)\n",
        "def limit(module, inputs, out):\n    out.mul_(2)\n    return out\n"
        "net.register_forward_hook(limit)\n",
        "def limit(module, out):\n    out.mul_(2)\nnet.register_forward_pre_hook(limit)\n",
        "def limit(module, inputs, out):\n    out.mul_(2)\n    out = out.mean()\n    log(out)\n"
        "net.register_forward_hook(limit)\n",
        "def limit(module, inputs, out):\n    out = out.detach().clone()\n    out.mul_(2)\n"
        "net.register_forward_hook(limit)\n",
        "def limit(module, out, grad):\n    out.mul_(2)\nnet.register_forward_hook(limit)\n",
    ],
)
def test_declined(code: str) -> None:
    assert rewritten(returned_from_hook, code, "mul_", "out") is None


def test_return_of_a_function_inside_stays() -> None:
    code = (
        "def limit(module, inputs, out):\n    def note():\n        if quiet:\n"
        "            return\n        print(1)\n    note()\n    out.mul_(2)\n"
        "net.register_forward_hook(limit)\n"
    )
    text = rewritten(returned_from_hook, code, "mul_", "out")
    assert text is not None and "            return\n" in text and "\n    return out\n" in text
