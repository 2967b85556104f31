"""Layers watched as one operation: same results, same history, same writes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from autograd_explain.program import Program, Source
from autograd_explain.record.recording import Recording


def watched(text: str) -> tuple[Recording, dict[str, object]]:
    """Run a cell under a recording."""
    namespace: dict[str, object] = {"torch": torch, "nn": nn}
    program = Program([Source(1, None, text, text, "<cell 1>")])
    recording = Recording()
    code = compile(text, "<cell 1>", "exec")
    with recording.watching(program, 1):
        exec(code, namespace)
    assert recording.limits == ()
    return recording, namespace


def lines(recording: Recording, entries: object) -> list[int]:
    """The lines of the user's that entries of the log belong to."""
    moments = recording.moments(recording.program)
    found = [moments.made(e[2] if type(e) is tuple else e.site, 0) for e in entries]  # type: ignore[attr-defined]
    return [m.place.line for m in found if m is not None and m.place is not None]


LAYERS = {
    "nn.LSTM(4, 5, batch_first=True)": "torch.randn(2, 3, 4)",
    "nn.GRU(4, 5, num_layers=2)": "torch.randn(2, 3, 4)",
    "nn.RNN(4, 5)": "torch.randn(2, 3, 4)",
    "nn.BatchNorm1d(4)": "torch.randn(3, 4)",
    "nn.BatchNorm2d(3)": "torch.randn(2, 3, 4, 4)",
    "nn.BatchNorm3d(3)": "torch.randn(2, 3, 2, 2, 2)",
}
TRAIN = """\
torch.manual_seed(0)
layer = {layer}
x = {x}.requires_grad_()
out = layer(x)
out = out[0] if isinstance(out, tuple) else out
(out * out).sum().backward()
"""


@pytest.mark.parametrize("layer", LAYERS)
def test_same_to_the_last_bit(layer: str) -> None:
    text = TRAIN.format(layer=layer, x=LAYERS[layer])
    plain: dict[str, object] = {"torch": torch, "nn": nn}
    exec(text, plain)
    recording, seen = watched(text)
    assert torch.equal(seen["x"].grad, plain["x"].grad)  # type: ignore[attr-defined]
    state = seen["layer"].state_dict()  # type: ignore[attr-defined]
    for name, value in plain["layer"].state_dict().items():  # type: ignore[attr-defined]
        assert torch.equal(state[name], value)
        assert state[name]._version == value._version
    assert 4 in lines(recording, recording.log.made)


def test_every_node_belongs_to_the_call() -> None:
    recording, _ = watched(TRAIN.format(layer="nn.LSTM(4, 5)", x="torch.randn(2, 3, 4)"))
    made = [e for e in recording.log.made if lines(recording, [e]) == [4]]
    assert len(made) == 1
    first, end, *_ = made[0]
    assert end - first >= 1


@pytest.mark.parametrize(("mode", "count"), [("train", 3), ("eval", 0)])
def test_a_batch_norm_writes_its_statistics_in_training(mode: str, count: int) -> None:
    text = f"layer = nn.BatchNorm1d(4).{mode}()\nx = torch.randn(3, 4)\ny = layer(x)\n"
    recording, _ = watched(text)
    found = [w for w in recording.log.wrote if lines(recording, [w]) == [3]]
    assert len(found) == count
    if count:
        versions = [(w.before, w.after) for w in found]
        assert all(before == after for before, after in versions[:2])  # no new version
        before, after = versions[2]  # num_batches_tracked
        assert after == before + 1


def test_hooks_subclasses_and_forwards_of_ones_own_stay_watched() -> None:
    text = """\
class Mine(nn.LSTM):
    def forward(self, x):
        y = x * 2
        return super().forward(y)
a = Mine(4, 5)(torch.randn(2, 3, 4, requires_grad=True))
layer = nn.GRU(4, 5)
def hook(module, args):
    return (args[0] * 3,)
layer.register_forward_pre_hook(hook)
b = layer(torch.randn(2, 3, 4, requires_grad=True))
"""
    recording, _ = watched(text)
    found = set(lines(recording, recording.log.made))
    assert {3, 8} <= found


def test_the_classes_are_left_as_they_were() -> None:
    watched("y = nn.LSTM(4, 5)(torch.randn(2, 3, 4))")
    with pytest.raises(RuntimeError):
        watched("nn.LSTM(4, 5)(torch.randn(2, 3, 9))")
    for layer in (nn.LSTM, nn.GRU, nn.RNN, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d):
        assert "__call__" not in vars(layer)
    from torch.nn import functional

    for name in ("has_torch_function_unary", "has_torch_function_variadic"):
        assert getattr(functional, name) is getattr(torch.overrides, name)
    assert "autograd_explain" not in torch.autograd.profiler.record_function.__enter__.__module__


def test_scripting_while_watched() -> None:
    _, seen = watched(
        "layer = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.BatchNorm1d(4)))\n"
        "y = layer(torch.randn(3, 4)).sum()\ny.backward()\n"
    )
    assert seen["layer"][0].weight.grad is not None  # type: ignore[index]


def test_a_mode_of_the_users_still_sees_every_function() -> None:
    text = """\
from torch.overrides import TorchFunctionMode
seen = []
class Names(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append(func.__name__)
        return func(*args, **(kwargs or {}))
with Names():
    nn.functional.relu(torch.ones(2))
    nn.functional.batch_norm(torch.ones(2, 2), None, None, training=True)
"""
    _, namespace = watched(text)
    assert "relu" in namespace["seen"] and "batch_norm" in namespace["seen"]  # type: ignore[operator]


def test_writes_in_place_of_functions() -> None:
    recording, _ = watched(
        "x = torch.randn(3)\nnn.functional.relu(x, inplace=True)\n"
        "nn.functional.dropout(x, 0.5, inplace=True)\n"
        "nn.functional.leaky_relu_(x)\ny = nn.functional.elu(x)\n"
        "e = nn.functional.embedding(torch.tensor([0]), torch.ones(2, 3), max_norm=0.5)\n"
    )
    assert lines(recording, recording.log.wrote) == [2, 3, 4, 6]
