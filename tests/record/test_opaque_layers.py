"""Layers watched as one operation: same results, same history, same writes."""

from __future__ import annotations

import re

import pytest
import torch
from notebook import Notebook
from torch import nn
from watching import lines, watched

from autograd_explain.record.recording import Recording

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


SEQUENTIAL = """\
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
    nn.Sequential(nn.Flatten(), nn.Linear(36, 5), nn.Sigmoid()),
)
x = torch.randn(2, 3, 8, 8, requires_grad=True)
for _ in range(2):
    out = model(x)
    (out * out).sum().backward()
"""


def operations(recording: Recording) -> list[str]:
    """The operations that made the nodes, in order."""
    sites, names = recording.sites.all, recording.operations.names
    return [names[sites[entry[2]].operation] for entry in recording.log.made]


def test_a_sequential_is_one_operation_and_the_same_to_the_last_bit() -> None:
    plain: dict[str, object] = {"torch": torch, "nn": nn}
    exec(SEQUENTIAL, plain)
    recording, seen = watched(SEQUENTIAL)
    assert operations(recording) == ["sequential", "mul", "sum"] * 2
    assert torch.equal(seen["x"].grad, plain["x"].grad)  # type: ignore[attr-defined]
    state = seen["model"].state_dict()  # type: ignore[attr-defined]
    for name, value in plain["model"].state_dict().items():  # type: ignore[attr-defined]
        assert torch.equal(state[name], value)
        assert state[name]._version == value._version
    counts = [(w.before, w.after) for w in recording.log.wrote if lines(recording, [w]) == [8]]
    assert len(counts) == 6 and counts[2][1] == counts[2][0] + 1  # statistics and their counter


def test_the_nodes_of_a_sequential_say_what_made_them() -> None:
    recording, seen = watched(SEQUENTIAL.replace("(out * out).sum().backward()", "pass"))
    history = recording.history(recording.program)
    made = history.creation(seen["out"])  # type: ignore[arg-type]
    assert made is not None and (made.op, made.place.line, made.target) == ("sigmoid", 8, "")
    layer = seen["out"].grad_fn.next_functions[0][0]  # type: ignore[attr-defined]
    site = recording.log.made[0][2]
    found = recording.moments(recording.program).made(site, 0, layer.name())
    assert found is not None and found.op == "linear"


@pytest.mark.parametrize(
    "layers",
    [
        "nn.ReLU(inplace=True), nn.Linear(4, 4)",  # writes the argument
        "nn.Linear(4, 4), nn.Sigmoid(), nn.ReLU(inplace=True)",  # writes what Sigmoid saved
        "nn.Linear(4, 4), Mine()",
        "nn.Linear(4, 4), hooked",
        "nn.Linear(4, 4), nn.Sequential(hooked)",
        "nn.Linear(4, 4), nn.Identity(), nn.ReLU(inplace=True)",
    ],
)
def test_a_sequential_that_writes_or_runs_code_of_the_users_stays_watched(layers: str) -> None:
    text = f"""\
class Mine(nn.Module):
    def forward(self, x):
        return x * 2
hooked = nn.Linear(4, 4)
hooked.register_forward_hook(lambda module, args, out: out * 3)
model = nn.Sequential({layers})
y = model(torch.randn(2, 4) * torch.ones(4, requires_grad=True))
"""
    recording, _ = watched(text)
    assert "sequential" not in operations(recording)


def test_a_write_to_what_a_sequential_was_given_is_seen() -> None:
    recording, _ = watched(
        "model = nn.Sequential(nn.Flatten())\n"
        "x = torch.randn(2, 3, 4) * torch.ones(4, requires_grad=True)\n"
        "y = model(x)\n"
        "y.mul_(2)\n"
    )
    assert [lines(recording, [a]) for a in recording.log.aliases] == [[3]]
    assert lines(recording, recording.log.wrote) == [4]


def test_a_sequential_without_grad_ends_the_graph_of_its_parameters() -> None:
    recording, _ = watched(
        "model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())\n"
        "for _ in range(2):\n"
        "    with torch.no_grad():\n"
        "        y = model(torch.randn(2, 4))\n"
    )
    (cut,) = recording.suspicion.cuts.cuts.values()
    assert cut.way == "no_grad" and len(cut.above) == 2


def test_torch_fx_still_finds_the_layers() -> None:
    text = """\
import torch.fx
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.norm = nn.BatchNorm1d(4)
    def forward(self, x):
        return self.norm(self.body(x))
targets = [node.target for node in torch.fx.symbolic_trace(Net()).graph.nodes]
"""
    _, namespace = watched(text)
    assert namespace["targets"] == ["x", "body.0", "body.1", "norm", "output"]


def test_an_argument_that_is_handed_on_has_left_no_graph() -> None:
    """torch.broadcast_tensors in mse_loss gives both arguments back where shapes agree."""
    recording, _ = watched(
        "w = torch.ones(2, 3, requires_grad=True)\n"
        "y = torch.zeros(2, 3)\n"
        "nn.functional.mse_loss(w * 2, y).backward()\n"
        "torch.broadcast_tensors(w * 2, torch.zeros(3))\n"
    )
    assert not recording.suspicion.cuts.cuts and not recording.suspicion.traces


@pytest.mark.parametrize(
    "compiled",
    [
        "compiled = torch.compile(model, backend='eager', fullgraph=True)",
        "class Net(nn.Module):\n    def __init__(self, body):\n        super().__init__()\n"
        "        self.body = body\n    def forward(self, x):\n        return self.body(x)\n"
        "compiled = Net(model)\ncompiled.compile(backend='eager', fullgraph=True)",
    ],
)
def test_what_is_compiled_is_compiled_as_without_us(compiled: str) -> None:
    text = (
        "model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(inplace=True))\n"
        f"{compiled}\n"
        "x = torch.randn(3, 4, requires_grad=True)\n"
        "for _ in range(2):\n"
        "    compiled(x).sum().backward()\n"
        "    y = model(x)\n"
    )
    notebook = Notebook({"torch": torch, "nn": nn})
    recording = Recording()
    with recording.watching(notebook.program, 1):
        notebook.run(text)
    assert recording.limits == ("compiled",)
    assert operations(recording) == ["compiled", "sum", "sequential"] * 2


def test_a_function_left_out_of_the_compilation_is_as_unseen_as_what_calls_it() -> None:
    notebook = Notebook({"torch": torch})
    recording = Recording()
    with recording.watching(notebook.program, 1):
        notebook.run(
            "@torch.compiler.disable\n"
            "def twice(x):\n"
            "    return x * 2\n"
            "compiled = torch.compile(lambda x: twice(x.sin()).cos(), backend='eager')\n"
            "x = torch.randn(3, requires_grad=True)\n"
            "compiled(x).sum().backward()\n"
            "twice(x).sum().backward()\n"
        )
    assert recording.limits == ("compiled",)
    assert operations(recording) == ["compiled", "sum", "mul", "sum"]


def traces(notebook: Notebook) -> list[str]:
    notebook.run(
        "import torch\nfrom torch import nn\n"
        "model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())\n"
        "def f(x):\n"
        "    first = x * 2\n"
        "    second = first.sin()\n"
        "    return second.sum()\n"
        "x = torch.ones(2, 2, requires_grad=True)\n"
        "of_function = torch.jit.trace(f, (x,))\n"
        "of_model = torch.jit.trace(model, (x,))\n"
        "graph, _ = torch.jit._get_trace_graph(model, (x,))\n"
        "seen = [of_function.graph, of_model.inlined_graph, graph]\n"
        "of_model(x).sum().backward()\n"
    )
    own = notebook.program.cells[0].filename
    texts = (str(each).replace(own, "CELL") for each in notebook.namespace["seen"])
    return [re.sub(r"___torch_mangle_\d+\.", "", text) for text in texts]


def test_what_is_traced_is_traced_as_without_us() -> None:
    plain = traces(Notebook())
    recording = Recording()
    notebook = Notebook()
    with recording.watching(notebook.program, 1):
        watched = traces(notebook)
    assert watched == plain and "%first : " in watched[0]
    assert recording.limits == ("traced",) and recording.failure is None


LOGGED = """\
class Logged(nn.Module):
    def __call__(self, *args):
        called.append(type(self).__name__)
        return super().__call__(*args)
class Net(nn.Sequential, Logged):
    pass
class Norm(nn.BatchNorm1d, Logged):
    pass
called = []
Norm(2)(Net(nn.Linear(2, 2))(torch.ones(3, 2)))
"""


def test_a_base_with_a_call_of_its_own_is_not_left_out() -> None:
    _, namespace = watched(LOGGED)
    assert namespace["called"] == ["Net", "Norm"]


PATCHED = """\
import functools
original = {owner}.{name}
@functools.wraps(original)
def patched(self, *args):
    return original(self, *args)
{owner}.{name} = patched
try:
    y = nn.Sequential(nn.Linear(4, 4), nn.ReLU())(torch.ones(2, 4))
finally:
    {owner}.{name} = original
"""


@pytest.mark.parametrize("patched", [("nn.Linear", "forward"), ("nn.Module", "__call__")])
def test_code_of_the_users_put_into_a_class_of_torchs_is_watched(patched: tuple[str, str]) -> None:
    owner, name = patched
    recording, _ = watched(PATCHED.format(owner=owner, name=name))
    assert operations(recording) == ["linear", "relu"]


def test_a_sequential_given_a_subclass_is_watched_inside() -> None:
    recording, _ = watched(
        "class Mine(torch.Tensor):\n    pass\n"
        "y = nn.Sequential(nn.Linear(4, 4), nn.ReLU())(torch.ones(2, 4).as_subclass(Mine))\n"
    )
    assert operations(recording) == ["linear", "relu"]


def test_a_module_without_its_tables_fails_as_without_us() -> None:
    with pytest.raises(AttributeError, match="_backward_hooks"):
        watched("nn.Sequential.__new__(nn.Sequential)(torch.ones(2))\n")


def test_all_parameters_of_a_sequential_without_grad_are_known() -> None:
    recording, namespace = watched(
        "model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))\n"
        "with torch.no_grad():\n"
        "    y = model(torch.randn(2, 4))\n"
    )
    (cut,) = recording.suspicion.cuts.cuts.values()
    parameters = namespace["model"].parameters()  # type: ignore[attr-defined]
    assert set(cut.above) == {id(p) for p in parameters}
