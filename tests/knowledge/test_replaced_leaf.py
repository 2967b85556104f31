"""Leaves that a loop updates by giving their name a new tensor: attacks, latents, images.

A row is a notebook, the cause, and the lines that the first rewrite brings in.
"""

from __future__ import annotations

import pytest
from knowledge.played import added, edited, explained, play
from knowledge.test_cases import run

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

BEGIN = """# %%
import torch
torch.manual_seed(0)
w, x = torch.rand(4), torch.rand(4)
def loss_of(v):
    return ((v - w) * v.exp()).square().sum()
# %%
"""
PROGRAMS: dict[str, tuple[str, str, list[str]]] = {
    "clamped behind the step": (
        """
adv = x.clone().requires_grad_()
for _ in range(3):
    loss_of(adv).backward()
    adv = adv + 0.1 * adv.grad.sign()
    adv = torch.clamp(adv, 0, 1)
""",
        "cast_made_non_leaf",
        ["adv = torch.clamp(adv, 0, 1).detach().requires_grad_()"],
    ),
    "a method makes the step, and asks for the gradient itself": (
        """
class Attack:
    def step(self, v):
        v.requires_grad_()
        loss_of(v).backward()
        v = v + 0.1 * v.grad.sign()
        return torch.min(v, x + 0.2)
    def run(self):
        v = x.clone()
        for _ in range(3):
            v = self.step(v)
        return v
# %%
Attack().run()
""",
        "cast_made_non_leaf",
        ["return torch.min(v, x + 0.2).detach()"],
    ),
    "a function puts new tensors into the dictionary that it is given": (
        """
params = {"a": x.clone(), "b": torch.ones(4)}
for p in params.values():
    p.requires_grad_()
def step(params, lr):
    with torch.no_grad():
        for name in params:
            params[name] = params[name] - lr * params[name].grad
            params[name].grad = None
# %%
for _ in range(3):
    loss_of(params["a"] * params["b"]).backward()
    step(params, 0.1)
""",
        "cast_made_non_leaf",
        ["params[name] -= lr * params[name].grad"],
    ),
    "of the elements of a loop over the list": (
        """
params = [x.clone().requires_grad_(), torch.ones(4, requires_grad=True)]
for _ in range(3):
    loss_of(params[0] * params[1]).backward()
    with torch.no_grad():
        for i, p in enumerate(params):
            params[i] = p - 0.1 * p.grad
""",
        "cast_made_non_leaf",
        ["params[i].copy_(p - 0.1 * p.grad)", "params[i].grad = None"],
    ),
    "the gradient is asked for, and no `.grad` filled": (
        """
scale = torch.ones(4, requires_grad=True)
def chain(v):
    v = v.requires_grad_()
    for _ in range(3):
        (slope,) = torch.autograd.grad(loss_of(scale * v), v)
        with torch.no_grad():
            v = v - 0.1 * slope + 0.01 * torch.randn_like(v)
    return v.detach()
# %%
chain(x.clone())
""",
        "cast_made_non_leaf",
        ["v = (v - 0.1 * slope + 0.01 * torch.randn_like(v)).requires_grad_()"],
    ),
    "the program clears the gradient": (
        """
delta = torch.zeros(4, requires_grad=True)
for _ in range(3):
    loss_of(x + delta).backward()
    delta = (delta + 0.1 * delta.grad.sign()).clamp(-0.2, 0.2)
    delta.grad.zero_()
""",
        "cast_made_non_leaf",
        [
            "with torch.no_grad():",
            "delta.copy_((delta + 0.1 * delta.grad.sign()).clamp(-0.2, 0.2))",
        ],
    ),
    "attributes under no_grad, the gradients cleared by another method": (
        """
class Line:
    def __init__(self):
        self.k, self.m = torch.ones(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    def update(self, rate):
        with torch.no_grad():
            self.k = self.k - rate * self.k.grad
            self.m = self.m - rate * self.m.grad
    def clear(self):
        self.k.grad.zero_()
        self.m.grad.zero_()
# %%
line = Line()
for _ in range(3):
    (line.k * x + line.m - w).square().mean().backward()
    line.update(0.1)
    line.clear()
""",
        "cast_made_non_leaf",
        ["self.k -= rate * self.k.grad", "self.m -= rate * self.m.grad"],
    ),
    "items of a list, set by a function": (
        """
params = [torch.ones(4, requires_grad=True), torch.zeros(1, requires_grad=True)]
def descend(ps):
    with torch.no_grad():
        for i in range(len(ps)):
            ps[i] = ps[i] - 0.1 * ps[i].grad
for _ in range(3):
    (params[0] * x + params[1] - w).square().mean().backward()
    descend(params)
    for p in params:
        p.grad.zero_()
""",
        "cast_made_non_leaf",
        ["ps[i] -= 0.1 * ps[i].grad"],
    ),
    "a dict with recording on, nothing cleared": (
        """
params = {"k": torch.ones(4, requires_grad=True), "m": torch.zeros(1, requires_grad=True)}
for _ in range(3):
    (params["k"] * x + params["m"] - w).square().mean().backward()
    for name in params:
        params[name] = params[name] - 0.1 * params[name].grad
""",
        "cast_made_non_leaf",
        [
            "with torch.no_grad():",
            "params[name] -= 0.1 * params[name].grad",
            "params[name].grad = None",
        ],
    ),
    "a list that is rebuilt": (
        """
params = [torch.ones(4, requires_grad=True), torch.zeros(1, requires_grad=True)]
for _ in range(3):
    (params[0] * x + params[1] - w).square().mean().backward()
    params = [(p - 0.1 * p.grad).detach() for p in params]
""",
        "cast_made_non_leaf",
        [
            "with torch.no_grad():",
            "for p in params:",
            "p -= 0.1 * p.grad",
            "p.grad = None",
        ],
    ),
    "two globals at once": (
        """
k, m = torch.ones(1, requires_grad=True), torch.zeros(1, requires_grad=True)
for _ in range(3):
    (k * x + m - w).square().mean().backward()
    with torch.no_grad():
        k, m = k - 0.1 * k.grad, torch.clamp(m - 0.1 * m.grad, -1, 1)
    k.grad = m.grad = None
""",
        "cast_made_non_leaf",
        ["k -= 0.1 * k.grad", "m.copy_(torch.clamp(m - 0.1 * m.grad, -1, 1))"],
    ),
    "a cut in the first round, before any update": (
        """
k = torch.ones(1, requires_grad=True)
for _ in range(3):
    (k * x - w).detach().square().mean().backward()
    with torch.no_grad():
        k = k - 0.1 * k.grad
    k.requires_grad_()
""",
        "graph_cut",
        ["(k * x - w).square().mean().backward()"],
    ),
    "the flag set at each step": (
        """
def dream(image):
    for _ in range(3):
        image.requires_grad = True
        (grad,) = torch.autograd.grad(loss_of(image), image)
        image = image + 0.1 * grad / grad.norm()
    return image
dream(x.clone())
""",
        "requires_grad_on_non_leaf",
        ["image = (image + 0.1 * grad / grad.norm()).detach()"],
    ),
    "an optimizer holds the leaf": (
        """
image = x.clone().requires_grad_()
opt = torch.optim.SGD([image], lr=0.1)
for _ in range(3):
    image = image.clamp(0, 1)
    opt.zero_grad()
    loss_of(image).backward()
    opt.step()
assert not torch.equal(image, x)
""",
        "second_backward",
        ["with torch.no_grad():", "image.copy_(image.clamp(0, 1))"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, cause, lines = PROGRAMS[name]
    cells = cells_of(BEGIN + text)
    found = explained(cells)
    assert found.finding.cause == cause
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == lines
    run(repaired)


def test_the_line_that_gave_the_new_tensor_is_named() -> None:
    found = play(cells_of(BEGIN + PROGRAMS["the flag set at each step"][0])).diagnosis
    assert found is not None
    place = found.finding.place(What.CAUSE)
    assert place is not None
    assert place.source == "image = image + 0.1 * grad / grad.norm()"


def test_an_update_that_has_not_run_is_not_blamed() -> None:
    """Nobody asked for the gradient: the first round fails, before its update."""
    text = """
v = torch.rand(4)
for step in range(3):
    loss_of(v).backward()
    with torch.no_grad():
        v = v - 0.1 * v.grad
"""
    cells = cells_of(BEGIN + text)
    found = explained(cells)
    assert found.finding.cause == "graph_cut"
    new = ["v = torch.rand(4, requires_grad=True)"]
    assert added(cells, edited(cells, found.rewrites[0])) == new


def test_an_update_in_a_function_that_nobody_calls_is_not_blamed() -> None:
    text = """
params = {"a": x.clone().requires_grad_()}
def step(params):
    for name in params:
        params[name] = params[name] - 0.1 * params[name].grad
# %%
params["a"].requires_grad_(False)
loss_of(params["a"]).backward()
"""
    found = explained(cells_of(BEGIN + text)).finding
    places = [e.place.source for e in found.events if e.place is not None]
    assert not any(source.startswith("params[name]") for source in places)


def test_an_update_that_never_reaches_the_reading_is_not_blamed() -> None:
    """Each round begins with another tensor; none of them is what the update of the last gave."""
    text = """
def begin(seed):
    torch.manual_seed(seed)
    v = torch.rand(4, requires_grad=True)
    v = v * 2
    return v
# %%
def nudge(v, g):
    return v - 0.1 * g
for seed in range(2):
    v = begin(seed)
    loss_of(v).backward()
    g = v.grad
    if g is not None:
        v = nudge(v, g)
"""
    found = play(cells_of(BEGIN + text)).diagnosis
    assert found is not None
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source == "v = v * 2"


def test_a_state_that_no_gradient_updates_keeps_its_history() -> None:
    """`h.grad` of a recurrent state is wanted along with the gradient of what came before."""
    text = """
h = torch.zeros(4, requires_grad=True)
for _ in range(2):
    h = torch.tanh(h * w + x)
loss_of(h).backward()
print(h.grad.sum())
"""
    found = play(cells_of(BEGIN + text)).diagnosis
    assert found is not None
    assert [r.fix for r in found.rewrites][:1] == ["retain_grad"]
