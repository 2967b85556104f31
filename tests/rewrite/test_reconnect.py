"""Values that left the graph and came back."""

from __future__ import annotations

import pytest
from rewriting import program_of, result, spot

from autograd_explain.rewrite.transforms.reconnect import reconnected
from autograd_explain.rewrite.transforms.training_step import zero_grad_after
from autograd_explain.rewrite.transforms.uncut import apply_patches, without_cut

ONE = [
    ("z = torch.tensor(h.detach().numpy())", ["h.detach().numpy()"], "z = h"),
    ("z = torch.from_numpy(h.detach().cpu().numpy())", ["h.detach()"], "z = h"),
    ("h = torch.tensor(h.tolist())", ["h.tolist()"], ""),
    ("total = total + 0.1 * penalty(w).item()", ["penalty(w).item()"],
     "total = total + 0.1 * penalty(w)"),
    ("z = torch.tensor(a + b)", ["torch.tensor(a + b)"], "z = (a + b)"),
    ("z = f(h.detach())", ["h.detach()"], "z = f(h)"),
    ("z = f(h.data)", ["h.data"], "z = f(h)"),
    ("z = torch.tensor([a.item(), b.item()])", ["a.item()", "b.item()"],
     "z = torch.stack([a, b])"),
    ("z = torch.tensor([h.item(), -1.0])", ["h.item()"],
     "z = torch.stack([h, torch.tensor(-1.0)])"),
    ("z = torch.tensor([[c, -s], [s, c]])", ["torch.tensor([[c, -s], [s, c]])"],
     "z = torch.stack([torch.stack([c, -s]), torch.stack([s, c])])"),
    ("z = torch.tensor([[f(x) for x in row] for row in m])",
     ["torch.tensor([[f(x) for x in row] for row in m])"],
     "z = torch.stack([torch.stack([f(x) for x in row]) for row in m])"),
    ("import math\nz = math.exp(-h.item()) * g", ["h.item()"],
     "import math\nz = torch.exp(-h) * g"),
    ("z = torch.tensor([c.item() for c in cs])", ["c.item()"], "z = torch.stack([c for c in cs])"),
    ("cs = [f(x).item() for x in xs]\nz = torch.tensor(cs, requires_grad=True)", ["f(x).item()"],
     "cs = [f(x) for x in xs]\nz = torch.stack(cs)"),
    ("z = torch.tensor(h.item(), dtype=torch.float64)", ["h.item()"], "z = h.to(torch.float64)"),
    ("z = g((h + (q - h)).detach())", ["(h + (q - h)).detach()"], "z = g((h + (q - h).detach()))"),
    ("z = torch.tensor(float(h))", ["float(h)"], "z = h"),
]  # fmt: skip


def test_both_sides_of_a_value_passed_straight_through_get_the_gradient() -> None:
    program = program_of("s = z + (q - z).detach()\n")
    found = apply_patches(without_cut(program, spot(program, "(q - z).detach()")))
    assert result(found) == "s = q + (z - z.detach())\n"


@pytest.mark.parametrize(("before", "cuts", "after"), ONE, ids=[b for b, _, _ in ONE])
def test_reconnected(before: str, cuts: list[str], after: str) -> None:
    program = program_of(before)
    assert result(reconnected(program, [spot(program, c) for c in cuts])) == after


@pytest.mark.parametrize(
    ("code", "cut"),
    [
        ("v = h.item()\nz = torch.tensor(v)", "h.item()"),
        ("a = h.detach().numpy()\nz = f(a)", "h.detach().numpy()"),
        ("vs.append(h.item())", "h.item()"),
        ("import math\nz = math.gamma(h.item())", "h.item()"),
        ("vs = [h.item(), 1.0]\nz = torch.tensor(vs)", "h.item()"),
        ("vs = [h.item()]\ndef f():\n    return torch.tensor(vs)", "h.item()"),
    ],
)
def test_a_value_that_comes_back_elsewhere_is_left_alone(code: str, cut: str) -> None:
    program = program_of(code)
    assert reconnected(program, [spot(program, cut)]) is None


def test_zero_grad_after() -> None:
    program = program_of("for i in r:\n    opt.step()  # go\n    n += 1\n")
    text = result(zero_grad_after(program, spot(program, "opt.step()")))
    assert text == "for i in r:\n    opt.step()  # go\n    opt.zero_grad()\n    n += 1\n"
    for other in ("scaler.step(opt)", "opt.step(closure)", "step()"):
        program = program_of(other)
        assert zero_grad_after(program, spot(program, other)) is None


LOSS = "for x in xs:\n    loss = mse(f(h.detach()), x)\n"
FLAGS = [
    "    if not loss.requires_grad:  # or backward raises\n        loss.requires_grad = True\n",
    "    loss.requires_grad_(True)\n",
    "    loss.requires_grad = True  # or backward raises\n",
]


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_that_only_silenced_the_cut_goes(flag: str) -> None:
    program = program_of(f"{LOSS}{flag}    loss.backward()\n")
    new = reconnected(program, [spot(program, "h.detach()")], spot(program, "loss.backward()"))
    assert result(new) == LOSS.replace(".detach()", "") + "    loss.backward()\n"


@pytest.mark.parametrize(
    ("flag", "other"),
    [
        ("", "    if not loss.requires_grad:\n        continue\n"),
        ("", "    other.requires_grad = True\n"),
        ("    loss.requires_grad = True; ", "    n = 1\n"),
    ],
)
def test_other_statements_before_the_backward_stay(flag: str, other: str) -> None:
    lines = flag + other.lstrip() if flag else other
    program = program_of(f"{LOSS}{lines}    loss.backward()\n")
    new = reconnected(program, [spot(program, "h.detach()")], spot(program, "loss.backward()"))
    assert result(new) == LOSS.replace(".detach()", "") + other + "    loss.backward()\n"


@pytest.mark.parametrize(
    ("made", "cut", "left"),
    [
        ("loss = Variable(loss.data, requires_grad=True)", "loss.data", ""),
        ("loss = torch.tensor(loss.item(), requires_grad=True)", "loss.item()", ""),
        (
            "loss = Variable(torch.Tensor([loss.item()]), requires_grad=True)",
            "loss.item()",
            "    loss = torch.stack([loss])\n",
        ),
        (
            "loss = Variable(torch.from_numpy(loss.detach().numpy()), requires_grad=True)",
            "loss.detach().numpy()",
            "",
        ),
        ("loss = loss.detach()\n    loss.requires_grad = True", "loss.detach()", ""),
        ("loss.detach_().requires_grad_()", "loss.detach_()", "    loss.requires_grad_()\n"),
    ],
)
def test_a_loss_made_a_leaf_of_its_own_stays_what_it_was(made: str, cut: str, left: str) -> None:
    head = "import torch\nfor x in xs:\n    loss = mse(f(h), x)\n"
    program = program_of(f"{head}    {made}\n    loss.backward()\n")
    new = reconnected(program, [spot(program, cut)], spot(program, "loss.backward()"))
    assert result(new) == f"{head}{left}    loss.backward()\n"
