"""What installed packages do to tensors: told at the user's line, with the library's beside it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from shadow_notebook import fresh_session, history_of, run

from autograd_explain.incident import Incident

Library = Callable[[str], None]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """Installs a package of one module, `somelib`."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "somelib", raising=False)

    def install(text: str) -> None:
        (folder / "somelib.py").write_text(text)
        importlib.invalidate_caches()

    yield install
    sys.modules.pop("somelib", None)


def failure(*cells: str) -> Incident:
    with fresh_session():
        return run([cell.lstrip() for cell in cells])


BLOCK = """\
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)

    def forward(self, x):
        out = torch.sigmoid(self.first(x))
        out += x
        return out
"""
CALLED = "import torch\nfrom somelib import Block\nmodel = Block(4)\nx = torch.randn(3, 4)"


def test_a_write_in_a_layer(installed: Library) -> None:
    installed(BLOCK)
    history = history_of(failure(CALLED, "y = model(x)\ny.sum().backward()"))
    saved = next(history.graph.overwritten())
    maker, (write,) = history.maker(saved.node), history.writes(saved)
    assert maker is not None and maker.inside is not None and write.inside is not None
    assert (maker.op, maker.place.source, maker.inside.line) == ("sigmoid", "y = model(x)", 10)
    assert (write.op, write.place.line, write.inside.source) == ("add_", 1, "out += x")
    assert (write.target, write.operands, write.chain) == ("", (), ())


def test_a_layer_inside_the_users_module(installed: Library) -> None:
    installed(BLOCK)
    net = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block(4)
    def forward(self, x):
        return self.block(x)
net = Net()
net(x).sum().backward()
"""
    history = history_of(failure(CALLED, net))
    (write,) = history.writes(next(history.graph.overwritten()))
    assert write.place.source == "return self.block(x)"
    assert [p.source for p in write.chain] == ["net(x).sum().backward()"]


def test_an_argument_that_is_written_has_the_users_name(installed: Library) -> None:
    installed("import torch\ndef shift_(t, by):\n    t -= by\n    return t\n")
    cell = """
import torch, somelib
w = torch.randn(3, requires_grad=True)
h = w.exp()
z = somelib.shift_(h, 1.0)
(z * w).sum().backward()
"""
    history = history_of(failure(cell))
    (write,) = history.writes(next(history.graph.overwritten()))
    assert (write.place.source, write.target) == ("z = somelib.shift_(h, 1.0)", "h")


def test_what_a_library_keeps_from_call_to_call(installed: Library) -> None:
    installed(
        "import torch\n"
        "class Memory:\n"
        "    def __init__(self):\n"
        "        self.state = None\n"
        "    def update(self, x):\n"
        "        self.state = x if self.state is None else torch.tanh(self.state) * x\n"
        "        return self.state\n"
    )
    cell = """
import torch
from somelib import Memory
w = torch.ones(2, requires_grad=True)
memory = Memory()
for _ in range(3):
    memory.update(w.exp()).sum().backward()
"""
    history = history_of(failure(cell))
    made = [s.op for s in history.steps if s.inside is not None]
    assert history.reading.walk.failure.reached
    assert made == ["tanh", "mul"]


def test_what_calls_no_tensors_is_left_out(installed: Library) -> None:
    installed("import torch\ndef wait():\n    for _ in range(10 ** 9):\n        pass\n")
    cell = """
import torch, somelib
w = torch.ones(2, requires_grad=True)
print(somelib) if w.sum() > 2 else None
if False: somelib.wait()
y = w.exp()
y += 1
y.sum().backward()
"""
    history = history_of(failure(cell))
    assert history.reading.walk.budget.spent < 100
    assert len(history.writes(next(history.graph.overwritten()))) == 1


EFFECTS = """\
import os
import torch

log = []
calls = {"n": 0}

class Meter:
    count = 0

def act(t, path):
    log.append(1)
    calls["n"] += 1
    Meter.count += 1
    open(path, "w").write("done")
    os.environ["AG_LIBRARY_TEST"] = "x"
    torch.somelib_was_here = True
    t += 1
    return t
"""


def test_nothing_of_the_library_is_changed(installed: Library, tmp_path: Path) -> None:
    installed(EFFECTS)
    path = tmp_path / "written"
    cell = f"""
import torch, os, somelib
w = torch.ones(2, requires_grad=True)
y = somelib.act(w.exp(), {str(path)!r})
os.remove({str(path)!r}); del os.environ["AG_LIBRARY_TEST"], torch.somelib_was_here
y.sum().backward()
"""
    incident = failure(cell)
    history = history_of(incident)
    (write,) = history.writes(next(history.graph.overwritten()))
    assert write.inside is not None and write.inside.source == "t += 1"
    library, names = incident.namespace["somelib"], incident.namespace
    assert (library.log, library.calls, library.Meter.count) == ([1], {"n": 1}, 1)
    assert not path.exists() and "AG_LIBRARY_TEST" not in names["os"].environ
    assert not hasattr(names["torch"], "somelib_was_here")


def test_an_object_whose_making_is_not_known_is_taken_as_it_lives(installed: Library) -> None:
    installed(
        "import json, torch\n"
        "from typing import NamedTuple\n"
        "class Kept(NamedTuple):\n"
        "    scale: float\n"
        "class Cache:\n"
        "    def __init__(self):\n"
        "        self.kept = Kept(json.loads('2.0'))\n"
        "        self.value = None\n"
        "    def get(self, x):\n"
        "        if self.value is None:\n"
        "            self.value = torch.exp(x) * self.kept.scale\n"
        "        return self.value\n"
    )
    cell = """
import torch
from somelib import Cache
w = torch.ones(2, requires_grad=True)
cache = Cache()
for _ in range(3):
    (cache.get(w) * w).sum().backward()
"""
    history = history_of(failure(cell))
    assert history.reading.walk.failure.reached
    made = [(s.op, s.inside.line) for s in history.steps if s.inside is not None]
    assert made == [("exp", 11), ("mul", 11)]


def test_data_whose_making_is_not_known_are_taken_as_they_live(installed: Library) -> None:
    installed(
        "import os\n"
        "import torch\n"
        "class Batch:\n"
        "    def __init__(self, x, index):\n"
        "        self.x, self.index = x, index\n"
        "def collated(rows):\n"
        "    index = torch.tensor([os.getpid() * 0 + i for i in range(len(rows))])\n"
        "    return Batch(torch.stack(rows), index)\n"
    )
    made = "import torch\nfrom somelib import collated\nbatch = collated([torch.ones(3)] * 2)"
    cell = """
w = torch.ones(3, requires_grad=True)
h = torch.sigmoid(batch.x * w)
h -= 1
torch.zeros(2, 3).index_add(0, batch.index, h).sum().backward()
"""
    history = history_of(failure(made, cell))
    saved = next(history.graph.overwritten())
    (write,), maker = history.writes(saved), history.maker(saved.node)
    assert (write.place.source, maker and maker.op) == ("h -= 1", "sigmoid")


def test_where_a_library_leads_astray_the_users_lines_stay_known(installed: Library) -> None:
    installed(
        "import subprocess, torch\n"
        "def act(t):\n"
        "    while subprocess.run(['true']).returncode == 0:\n"
        "        t = t * 2\n"
        "        if t.sum() > 9: raise ValueError\n"
        "    return t\n"
    )
    cell = """
import torch, somelib
w = torch.ones(2, requires_grad=True)
try:
    somelib.act(w)
except ValueError:
    pass
y = torch.sigmoid(w)
y += 1
y.sum().backward()
"""
    history = history_of(failure(cell))
    (write,) = history.writes(next(history.graph.overwritten()))
    assert write.place.source == "y += 1"


DECORATED = """\
import inspect
import torch
from torch import nn

def documented(decorated):
    decorated.__doc__ = inspect.getsource(decorated).splitlines()[5]
    return decorated

def counted(function):
    def wrapper(*args):
        return function(*args)
    wrapper.__wrapped__ = function
    return wrapper

@documented
class Block(nn.Module):
    @documented
    @counted
    def forward(self, x):
        out = torch.sigmoid(x)
        setattr(self, "kept", out)
        out += x
        return getattr(self, "kept") if hasattr(self, "kept") else x


class Unused: ...
"""


def test_decorators_that_left_no_trace(installed: Library) -> None:
    installed(DECORATED)
    cell = """
import torch
from somelib import Block
x = torch.randn(3, requires_grad=True)
y = Block()(x.exp())
y.sum().backward()
"""
    history = history_of(failure(cell))
    (write,) = history.writes(next(history.graph.overwritten()))
    assert write.inside is not None
    assert (write.place.line, write.inside.source) == (4, "out += x")


NESTED = """\
import torch
from torch import nn
from inspect import stack

class Deep(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.caller = stack()[0].function
        self.inner = Deep(depth - 1) if depth else nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.inner(x))
"""


def test_modules_deep_in_a_model_that_is_not_made_again(installed: Library) -> None:
    installed(NESTED)
    made = "import torch\nfrom somelib import Deep\nmodel = Deep(9)\nx = torch.ones(2, 4)"
    history = history_of(failure(made, "y = model(x)\ny.mul_(2)\ny.sum().backward()"))
    (write,) = history.writes(next(history.graph.overwritten()))
    assert (write.place.source, write.target) == ("y.mul_(2)", "y")
    assert [s.op for s in history.steps].count("tanh") == 10


def test_a_package_whose_own_file_names_nothing_of_torch(
    installed: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed("")
    folder = tmp_path / "site-packages" / "outer"
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import inner\n")
    (folder / "inner.py").write_text("import torch\n\ndef shift_(t):\n    t += 1\n    return t\n")
    cell = """
import torch, outer
w = torch.randn(3, requires_grad=True)
h = w.exp()
outer.inner.shift_(h).sum().backward()
"""
    for name in ("outer", "outer.inner"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    history = history_of(failure(cell))
    (write,) = history.writes(next(history.graph.overwritten()))
    assert (write.place.line, write.target) == (4, "h")


def test_what_an_unknown_call_gave_can_be_written(installed: Library) -> None:
    installed("import torch, ctypes\n\ndef load(t):\n    return ctypes.py_object(t.exp()).value\n")
    cell = """
import torch, somelib
w = torch.randn(3, requires_grad=True)
h = somelib.load(w)
z = h.sin()
h += 1
z.sum().backward()
"""
    history = history_of(failure(cell))
    saved = next(history.graph.overwritten())
    (write,), maker = history.writes(saved), history.maker(saved.node)
    assert maker is not None
    assert (maker.place.source, write.place.source) == ("z = h.sin()", "h += 1")


def test_a_configuration_that_looks_at_each_attribute(installed: Library) -> None:
    installed(
        "import torch\n"
        "class Config:\n"
        "    def __init__(self, scale):\n"
        "        self.scale = scale\n"
        "    def __getattribute__(self, name):\n"
        "        return super().__getattribute__(name)\n"
        "class Scaled(torch.nn.Module):\n"
        "    def __init__(self, config):\n"
        "        super().__init__()\n"
        "        self.config = config\n"
        "    def forward(self, x):\n"
        "        if self.config.scale is not None:\n"
        "            x = torch.sigmoid(x) if self.config.scale > 1 else torch.tanh(x)\n"
        "        return x\n"
    )
    cell = """
import torch
from somelib import Config, Scaled
model = Scaled(Config(0.5))
h = model(torch.ones(3, requires_grad=True))
h += 1
h.sum().backward()
"""
    history = history_of(failure(cell))
    saved = next(history.graph.overwritten())
    maker = history.maker(saved.node)
    assert maker is not None and maker.op == "tanh"
    assert [w.target for w in history.writes(saved)] == ["h"]


RENAMED = """\
import functools, json, torch
from dataclasses import dataclass

class Renaming(type):
    def __setattr__(cls, name, value):
        if name == "__init__":
            init = value
            @functools.wraps(init)
            def __init__(self, *args, **kwargs):
                init(self, *args, **kwargs)
            value = __init__
        super().__setattr__(name, value)

class Output(metaclass=Renaming):
    pass

@dataclass
class Hidden(Output):
    last: torch.Tensor = None

class Config:
    names = {"width": "d"}
    def __init__(self, d):
        self.d = abs(json.loads(str(d)))
    def __getattribute__(self, name):
        if name != "names" and name in super().__getattribute__("names"):
            name = super().__getattribute__("names")[name]
        return super().__getattribute__(name)

class Model(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.lin = torch.nn.Linear(config.width, config.width)
    def forward(self, x):
        if self.config.width < 1:
            return None
        return Hidden(last=self.lin(x))
"""


def test_an_output_class_and_settings_as_transformers_has_them(installed: Library) -> None:
    installed(RENAMED)
    cell = """
import torch
from somelib import Config, Model
class Net(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        h = self.inner(x).last
        gate = torch.sigmoid(h)
        gate[0] = 1.0
        return gate * h
net = Net(Model(Config(4)))
net(torch.randn(3, 4)).sum().backward()
"""
    history = history_of(failure(cell))
    saved = next(history.graph.overwritten())
    maker = history.maker(saved.node)
    assert maker is not None and maker.place.source == "gate = torch.sigmoid(h)"
    assert [w.place.source for w in history.writes(saved)] == ["gate[0] = 1.0"]


COLLECTING = """\
import torch
from contextvars import ContextVar
from typing import OrderedDict
import somelib

_found = ContextVar("found", default=None)

class TanhLayer(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x)

def layer(name):
    kinds = [k for k in vars(somelib).values() if isinstance(k, type)]
    return next(k for k in kinds if k.__name__ == name + "Layer")()

class Stack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.extra = OrderedDict()
        self.layers = torch.nn.ModuleList([layer("Tanh"), layer("Tanh")])
        self.hooked = False
    def forward(self, x):
        if not self.hooked:
            def collect(module, args, output):
                if _found.get() is not None:
                    _found.get().append(output)
            for part in self.layers:
                part.register_forward_hook(collect)
            self.hooked = True
        token = _found.set([])
        for part in self.layers:
            x = part(x)
        states = tuple(_found.get())
        _found.reset(token)
        return states
"""


@pytest.mark.parametrize("made", ["stack = Stack()", "stack = [Stack()][0]"])
def test_outputs_that_hooks_of_the_library_collect(installed: Library, made: str) -> None:
    installed(COLLECTING)
    called = """
states = stack(torch.ones(3, requires_grad=True))
h = states[-1]
h += 1
h.sum().backward()
"""
    incident = failure(f"import torch\nfrom somelib import Stack\n{made}", called)
    history = history_of(incident)
    saved = next(history.graph.overwritten())
    maker, (write,) = history.maker(saved.node), history.writes(saved)
    assert maker is not None and (maker.op, maker.place.line) == ("tanh", 1)
    assert write.place.source == "h += 1"


LOADER = """
import torch

class Data:
    def __init__(self, x, kind):
        self.x, self.kind = x, kind

class Batch:
    def rows(self):
        return self.x.shape[0]

class Loader(torch.utils.data.DataLoader):
    def __init__(self, data):
        super().__init__(data, batch_size=2, collate_fn=self.together)
    def together(self, data):
        made = type("DataBatch", (Batch, type(data[0])), {"__module__": "elsewhere"})
        batch = made.__new__(made)
        batch.__dict__.update(x=torch.stack([d.x for d in data]), kind=torch.tensor([2, 1]))
        return batch
"""


def test_what_a_librarys_loader_gives(installed: Library) -> None:
    """Its items are of a class made while the program ran, and indices in them choose rows."""
    installed(LOADER)
    made = """
import torch
from somelib import Data, Loader
loader = Loader([Data(torch.rand(3), k) for k in range(4)])
net = torch.nn.Linear(3, 3)
"""
    cell = """
for batch in loader:
    out = net(batch.x)[: batch.rows()].exp()
    part = out[batch.kind - 1, batch.kind]
    out += 1
    part.sum().backward()
"""
    history = history_of(failure(made, cell))
    (write,) = history.writes(next(history.graph.overwritten()))
    assert write.place.source == "out += 1"
