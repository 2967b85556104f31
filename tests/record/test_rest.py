"""Of a loop whose lines have all been seen many times the recorder rests."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from notebook import Notebook
from torch import nn
from torch.overrides import TorchFunctionMode
from watching import session

from autograd_explain.record import Recording
from autograd_explain.record.observe import rest

_SETUP = """
import torch
from torch import nn
x, y = torch.randn(8, 2), torch.randn(8, 1)
left = []
def stack():
    return torch._C._len_torch_function_stack()
"""
_BY_HAND = """
w = torch.zeros(2, 1, requires_grad=True)
for i in range(10):
    loss = (x @ w - y).square().mean()
    loss.backward()
    w.data -= 0.1 * w.grad
    w.grad = None
    left.append(stack())
"""
_IN_TURN = """
for rate in (0.1, 0.2):
    model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for i in range(6):
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
"""
_THAWED = """
body, head = nn.Linear(2, 4), nn.Linear(4, 1)
body.requires_grad_(False)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for part in (head, body):
    for i in range(6):
        optimizer.zero_grad()
        (head(body(x)) - y).square().mean().backward()
        optimizer.step()
    body.requires_grad_(True)
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
"""
_COPIED = """
import copy
net = nn.Linear(2, 1)
mean = copy.deepcopy(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(6):
    optimizer.zero_grad()
    (net(x) - mean(x).detach()).square().mean().backward()
    optimizer.step()
    for kept, new in zip(mean.parameters(), net.parameters()):
        kept.data.mul_(0.9).add_(new.data, alpha=0.1)
net = copy.deepcopy(mean)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
optimizer.zero_grad()
(net(x) - y).square().mean().backward()
optimizer.step()
"""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three backwards are enough, however long they take."""
    for name, value in (("BACKWARDS", 2), ("SECONDS", 0.0), ("EVENTS", 0), ("EACH", 1)):
        monkeypatch.setattr(rest, name, value)


def ran(text: str, **names: Any) -> tuple[Any, dict[str, Any]]:
    namespace = {"__name__": "__main__", **names}
    found, recording = session((_SETUP, text), namespace)
    assert found == []
    return recording, namespace


def test_it_leaves_the_stack_until_the_cell_ends() -> None:
    recording, names = ran(_BY_HAND)
    assert recording.limits == ("rested",) and "rested" in recording.blind_spots
    assert names["left"] == [1] * 3 + [0] * 7 and names["stack"]() == 0
    session((_SETUP,), names)  # what it replaced of torch's is back
    assert torch._tensor.has_torch_function_unary is torch._C._has_torch_function_unary


def test_what_is_new_keeps_it_awake() -> None:
    rounds = "w = torch.ones(2, requires_grad=True)\n" + "w.sum().backward()\n" * 10
    recording, _ = ran(rounds)
    assert recording.limits == ()


def test_it_stays_where_watching_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "EVENTS", 10**9)
    recording, names = ran(_BY_HAND)
    assert recording.limits == () and names["left"] == [1] * 10


def test_a_whole_program_is_watched_to_its_end() -> None:
    notebook, recording = Notebook({"__name__": "__main__"}), Recording()
    code = notebook.add(_SETUP + _BY_HAND)
    with recording.watching(notebook.program, None):
        exec(code, notebook.namespace)
    assert recording.limits == () and notebook.namespace["left"] == [1] * 10


class _Above(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def test_a_mode_of_the_programs_stays_where_it_is() -> None:
    inside = _BY_HAND.replace("\n", "\n    ")
    recording, names = ran(f"with Above():{inside}", Above=_Above)
    assert recording.limits == ("rested",) and names["left"] == [2] * 3 + [1] * 7


@pytest.mark.parametrize("program", (_IN_TURN, _THAWED, _COPIED))
def test_what_was_not_watched_is_no_alarm(program: str) -> None:
    recording, _ = ran(program, nn=nn)
    assert recording.blind_spots == ("rested",)


def test_what_was_seen_is_told() -> None:
    text = _BY_HAND.replace("w.grad = None", "pass")
    found, recording = session((_SETUP, text), {"__name__": "__main__"})
    assert [s.name for s in found] == ["gradients-not-cleared"]
    assert recording.limits == ("rested",)


def test_a_failure_behind_it_is_not_taken_for_watched() -> None:
    notebook: dict[str, Any] = {"__name__": "__main__"}
    text = _BY_HAND + "late = (w * x.T).exp()\nnode = late.grad_fn\n"
    _, recording = session((_SETUP, text), notebook)
    assert not recording.saw([notebook["node"]._sequence_nr()])
    assert recording.saw([recording.log.made[-1][0]])


def test_a_step_in_whose_closure_it_began_to_rest_notes_nothing_more() -> None:
    text = """
w = torch.zeros(2, 1, requires_grad=True)
optimizer, losses = torch.optim.LBFGS([w], lr=0.01, max_iter=12), []
def closure():
    optimizer.zero_grad()
    losses.append((x @ w - y).square().mean())
    losses[-1].backward()
    return losses[-1]
optimizer.step(closure)
"""
    recording, names = ran(text)
    nodes = [loss.grad_fn._sequence_nr() for loss in names["losses"]]
    assert recording.limits == ("rested",)
    assert recording.saw(nodes[:1]) and not recording.saw(nodes[-1:])
