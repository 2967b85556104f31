"""A value written behind autograd's back is spoken of when backward finds another one, and only
then."""

from __future__ import annotations

from typing import Any

import pytest
from put_back_programs import program
from silent_programs import HEAD
from watching import session, signals

from autograd_explain.record.detect import hidden

_PROGRAMS = 200
_PER_TEST = 25
BATCHES = [range(i, i + _PER_TEST) for i in range(0, _PROGRAMS, _PER_TEST)]


def told(cells: tuple[str, ...], **names: Any) -> list[tuple[str, str]]:
    """Each finding, the uncertain ones too, with the line that it blames."""
    found = [*signals(cells, **names), *signals(cells, sure=False, **names)]
    return [(s.name, _guilty(s.moments)) for s in found]


def _guilty(moments: Any) -> str:
    return next((m.place.source for m in moments.get("changed", ())), "")


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda r: f"{r.start}-{r.stop - 1}")
def test_values_put_back_are_not_spoken_of(seeds: range) -> None:
    for seed in seeds:
        made = program(seed, changed=False)
        assert told(made.cells) == [], f"seed {seed}:\n{made.cells}"


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda r: f"{r.start}-{r.stop - 1}")
def test_a_change_for_good_is_found_with_its_line(seeds: range) -> None:
    for seed in seeds:
        made = program(seed, changed=True)
        found = signals(made.cells)
        assert [s.name for s in found] == ["silent-overwrite"], f"seed {seed}:\n{made.cells}"
        line = _guilty(found[0].moments)
        assert line in (made.guilty, ""), f"seed {seed}: {line}\n{made.cells}"


def test_gradcheck_is_left_alone() -> None:
    """It perturbs each element of its inputs and puts it back, hundreds of times."""
    cells = (
        HEAD + "x = torch.randn(6, 9, dtype=torch.double, requires_grad=True)\n"
        "w = torch.randn(9, 3, dtype=torch.double, requires_grad=True)\n"
        "def f(x, w):\n    return torch.tanh(x @ w).pow(2)",
        "loss = f(x, w).sum()\ntorch.autograd.gradcheck(f, (x, w))\n"
        "torch.autograd.gradgradcheck(f, (x[:2, :3].detach().requires_grad_(), w[:3]))\n"
        "loss.backward()",
    )
    assert told(cells) == []


def test_values_that_cannot_be_compared_are_not_said_to_be_others() -> None:
    """A wrapper has no memory of its own: whether a value was put back cannot be seen."""
    cells = (
        HEAD + "from torch.testing._internal.logging_tensor import LoggingTensor\n"
        "x = LoggingTensor(torch.rand(2)).requires_grad_()",
        "loss = (x * x).sum()\nold = x.data[0].clone()\nx.data[0] = old + 1\n"
        "x.data[0] = old\nloss.backward()",
    )
    found, recording = session(cells, {"__name__": "__main__"})
    assert found == [] and recording.notes() == ()
    assert recording.blind_spots == ("values_unreadable",)


def test_of_many_writes_put_back_the_one_that_was_not_is_found() -> None:
    cells = (
        HEAD + "w = torch.randn(60, requires_grad=True)",
        "loss = (w * w).sum()\nflat = w.data\nfor i in range(60):\n    old = flat[i].item()\n"
        "    flat[i] = old + 1\n    (w * w).sum()\n    flat[i] = old\nw.data.mul_(2)\n"
        "loss.backward()",
    )
    assert told(cells) == [("silent-overwrite", "w.data.mul_(2)")]


def test_values_put_back_only_after_they_were_used_are_another_matter() -> None:
    """The second graph saved the changed values: it is the putting back that harms it."""
    cells = (
        HEAD + "w = torch.randn(3, requires_grad=True)",
        "kept = w.data.clone()\nw.data.mul_(2)\nloss = (w * w).sum()\nw.data.copy_(kept)\n"
        "loss.backward()",
    )
    assert told(cells) == [("silent-overwrite", "w.data.copy_(kept)")]


LARGE = (
    "w = torch.randn(600, 600, requires_grad=True)\nloss = (w * w).sum()\nkept = w.data.clone()\n"
)


@pytest.mark.parametrize(
    ("writes", "line"),
    [
        ("w.data.mul_(2)\nw.data.copy_(kept)", None),
        ("w.data[5, 7] = 9\nw.data[5, 7] = kept[5, 7]", None),
        ("w.data[5, 7] = 9", "w.data[5, 7] = 9"),
        ("w.data.mul_(2)", "w.data.mul_(2)"),
    ],
)
def test_large_tensors_are_looked_at_in_samples_and_where_they_were_written(
    writes: str, line: str | None
) -> None:
    found = told((HEAD + LARGE, writes + "\nloss.backward()"))
    assert found == ([] if line is None else [("silent-overwrite", line)])


def test_what_is_kept_of_overwritten_values_is_bounded() -> None:
    cells = (
        HEAD + "v = torch.randn(500, requires_grad=True)\n"
        "ws = [torch.randn(500, 500) for _ in range(8)]\nlosses = [(w * v).sum() for w in ws]",
        "for _ in range(30):\n    for w in ws:\n        w.data.mul_(1.01)",
    )
    _, recording = session(cells, {})
    kept = recording.suspicion.overwrites.hidden
    assert hidden._MAX_BYTES < kept.bytes < 2 * hidden._MAX_BYTES


def test_nothing_is_kept_of_what_no_graph_has() -> None:
    """As in a loop that updates its parameters by hand."""
    cells = (
        HEAD + "net = nn.Linear(3, 2)",
        "for _ in range(3):\n    loss = net(torch.ones(1, 3)).exp().sum()\n    loss.backward()\n"
        "    for p in net.parameters():\n        p.data.add_(p.grad.data, alpha=-0.1)\n"
        "        p.data = p.data * 0.9\n        p.grad = None",
    )
    _, recording = session(cells, {})
    assert not recording.suspicion.overwrites.hidden


def test_a_users_dispatch_mode_does_not_see_what_is_kept() -> None:
    cells = (
        HEAD + "from torch.utils._python_dispatch import TorchDispatchMode\n"
        "class Log(TorchDispatchMode):\n    def __torch_dispatch__(self, f, t, a=(), k=None):\n"
        "        seen.append(str(f))\n        return f(*a, **(k or {}))\n"
        "seen, w = [], torch.randn(3, requires_grad=True)",
        "loss = (w * w).sum()\nwith Log():\n    w.data.mul_(2)\n    w.data[0] = 2.0\n"
        "    w.data = w.data * 2\nloss.backward()",
    )
    plain: dict[str, Any] = {}
    exec("\n".join(cells), plain)
    names: dict[str, Any] = {}
    assert len(session(cells, names)[0]) == 1
    assert names["seen"] == plain["seen"]


@pytest.mark.parametrize(("used", "kept"), [("", 0), ("kept = w.grad * w\n    ", 1)])
def test_of_a_gradient_that_no_graph_holds_nothing_is_kept(used: str, kept: int) -> None:
    cells = (
        HEAD + "w = torch.randn(3, requires_grad=True)",
        f"for _ in range(1):\n    (w * w).sum().backward()\n    {used}w.grad.data.zero_()",
    )
    _, recording = session(cells, {"__name__": "__main__"})
    assert len(recording.suspicion.overwrites.hidden._all) == kept
