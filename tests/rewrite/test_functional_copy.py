"""A deep copy whose parameters a loop updates, as a function of the original's parameters."""

from __future__ import annotations

import pytest
from rewriting import rewritten

from autograd_explain.knowledge.silent_cut.functional_copy import functional_copy

CODE = """def adapt(model, x, y):
    fast = copy.deepcopy(model)
    loss = f(fast(x), y)
    grads = torch.autograd.grad(loss, list(fast.parameters()), create_graph=True)
    for p, g in zip(fast.parameters(), grads):
        {update}
    return fast
"""
MADE = """def adapt(model, x, y):
    weights = dict(model.named_parameters())
    fast = lambda *args: torch.func.functional_call(model, weights, args)
    loss = f(fast(x), y)
    grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
    weights.update({{name: {new} for (name, p), g in zip(weights.items(), grads)}})
    return fast
"""


@pytest.mark.parametrize(
    ("update", "new"),
    [
        ("p.data -= lr * g", "p - lr * g"),
        ("p.data -= g + decay", "p - (g + decay)"),
        ("p.data = p.data - lr * g", "p - lr * g"),
        ("p.data.sub_(g, alpha=lr)", "p.sub(g, alpha=lr)"),
        ("p.copy_(p - lr * g)", "p - lr * g"),
    ],
)
def test_update_by_hand(update: str, new: str) -> None:
    text = rewritten(functional_copy, CODE.format(update=update), "deepcopy")
    assert text == MADE.format(new=new)


def test_update_under_no_grad() -> None:
    loop = "    for p, g in zip(fast.parameters(), grads):\n        p -= lr * g\n"
    block = "    with torch.no_grad():\n" + "".join(f"    {x}\n" for x in loop.splitlines())
    code = CODE.format(update="p -= lr * g").replace(loop, block)
    assert rewritten(functional_copy, code, "deepcopy") == MADE.format(new="p - lr * g")


@pytest.mark.parametrize(
    "update", ["p.data -= g; count(p)", "log(p, g)", "p.data = p.data - g if g else p.data; f()"]
)
def test_what_does_anything_else_stays(update: str) -> None:
    assert rewritten(functional_copy, CODE.format(update=update), "deepcopy") is None


def test_copy_that_nothing_updates_stays() -> None:
    code = "def best(model):\n    kept = copy.deepcopy(model)\n    return kept\n"
    assert rewritten(functional_copy, code, "deepcopy") is None
