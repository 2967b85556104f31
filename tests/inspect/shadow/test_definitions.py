"""Functions and classes of installed packages are taken as they live: no definition runs again."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from notebook import installed
from shadow_notebook import fresh_session, history_of, run

from autograd_explain.inspect.shadow import InferredHistory

Told = Callable[[str, str], InferredHistory]


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    """Installs a package of one module, `somelib`, and tells the history of cells that use it."""
    torch.set_num_threads(1)
    with installed(tmp_path, "somelib", "") as file:

        def history(library: str, *cells: str) -> InferredHistory:
            file.write_text(library)
            importlib.invalidate_caches()
            with fresh_session():
                found = history_of(run([cell.lstrip() for cell in cells]))
            assert found.reading.walk.failure.reached
            return found

        yield history


def made(history: InferredHistory) -> list[str]:
    return [s.op for s in history.steps if s.inside is not None]


BORN_BY_MACHINERY = """\
import dataclasses, functools, subprocess
import torch
from torch import nn

subprocess.run(["true"])  # what a definition asks of the world is not asked again
scale = 2.0

class Meta(type):
    def __new__(meta, name, bases, names):
        names["power"] = staticmethod(lambda t: t.pow(int(subprocess.os.environ.get("P", 2))))
        return super().__new__(meta, name, bases, names)

def logged(before):
    def around(function):
        @functools.wraps(function)
        def wrapper(self, *args):
            return function(self, *args) * before
        return wrapper
    return around

@dataclasses.dataclass
class Config:
    width: int = 3
    names: list = dataclasses.field(default_factory=list)

@dataclasses.dataclass
class Output:
    value: torch.Tensor
    extra: tuple = ()
    def __post_init__(self):
        self.first = self.value[0]

def shift(t):
    return torch.sigmoid(t)

class Layer(metaclass=Meta):
    def __init__(self, config=None):
        self.__config = config or Config()
        self.__config.names.append("layer")

    @property
    def width(self):
        return self.__config.width

    @functools.cached_property
    def weight(self):
        return torch.ones(self.width)

    @classmethod
    def default(cls):
        return cls(Config(width=3))

    def shift(self, t):
        return shift(t)

    @logged(scale)
    def __call__(self, x):
        return Output(self.power(self.shift(x * self.weight))).value
"""


def test_classes_are_taken_as_they_live(told: Told) -> None:
    cell = """
import torch
from somelib import Layer
w = torch.ones(3, requires_grad=True)
layer = Layer.default()
h = layer(w)
y = h.exp()
y += 1
y.sum().backward()
"""
    history = told(BORN_BY_MACHINERY, cell)
    assert "sigmoid" in made(history) and "pow" in made(history)
    (write,) = history.writes(next(history.graph.overwritten()))
    assert write.place.source == "y += 1"


WRAPPED = """\
import functools, inspect
import torch

class Metric(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.update = self._wrapped(self.update)
        self._names = [n for n in inspect.signature(self.update).parameters]

    def _wrapped(self, update):
        @functools.wraps(update)
        def wrapped(*args):
            self._called = True
            return update(*args)
        return wrapped

    def forward(self, *args):
        return self.update(*args)
"""


def test_a_method_that_an_object_has_wrapped(told: Told) -> None:
    cell = """
import torch, somelib
class Own(somelib.Metric):
    def update(self, x):
        p = torch.sigmoid(x)
        p += 1
        return p
own = Own()
own(torch.ones(2, requires_grad=True)).sum().backward()
"""
    history = told(WRAPPED, cell)
    (write,) = history.writes(next(history.graph.overwritten()))
    assert write.place.source == "p += 1"


DELEGATING = """\
import torch

class Wrapper(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "inner":
                raise
            return getattr(self.inner, name)

    def forward(self, x):
        x = torch.tanh(x) if hasattr(self, "special") else torch.sigmoid(x)
        try:
            return self.inner(x)
        except BaseException:
            x = None
            raise
"""


def test_an_attribute_that_is_not_there_is_not_unknown(told: Told) -> None:
    cell = """
import torch, somelib
net = somelib.Wrapper(torch.nn.Linear(2, 2))
h = net(torch.ones(2, requires_grad=True))
assert net.weight is not None
y = h.exp()
y += 1
y.sum().backward()
"""
    assert "sigmoid" in made(told(DELEGATING, cell))


UNKNOWN_AT_BIRTH = """\
import subprocess
import torch

class Base(torch.nn.Module):
    def __init__(self, many=0):
        super().__init__()
        self.steps = [int(subprocess.run(["true"]).returncode)] * 2
        self.act = torch.nn.Tanh()

class Slow(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.total = 0
        for i in range(900):
            self.total = self.total + i
        self.act = torch.nn.Sigmoid() if self.total == 404550 else torch.nn.ReLU()

    def forward(self, x):
        return self.act(x)
"""


def test_what_a_library_began_for_the_users_object_is_taken_from_the_live_one(told: Told) -> None:
    cell = """
import torch, somelib
class Own(somelib.Base):
    def __init__(self):
        super().__init__()
        self.slow = somelib.Slow()
    def forward(self, x):
        for _ in self.steps:
            x = self.act(x)
        y = self.slow(x)
        y += 1
        return y
own = Own()
own(torch.ones(2, requires_grad=True)).sum().backward()
"""
    history = told(UNKNOWN_AT_BIRTH, cell)
    (write,) = history.writes(next(history.graph.overwritten()))
    assert write.place.source == "y += 1"
    assert [s.op for s in history.steps].count("tanh") == 2
    assert history.reading.walk.budget.spent < 900


ASKING = """\
import os, time
import torch
from functools import lru_cache

@lru_cache
def available():
    return os.path.exists(__import__("subprocess").os.getcwd() + "/no such file")

available()

def act(x, kind=None):
    started = time.time()
    if isinstance(x, kind or torch.nn.Module) or os.environ.get("SOMELIB_FAST") == "1":
        return x
    if torch.jit.is_tracing() or available():
        return torch.tanh(x)
    return globals()["last"](x)

def last(x):
    return torch.sigmoid(x)
"""


def test_what_a_library_asks_of_its_surroundings(told: Told) -> None:
    cell = """
import torch, somelib
y = somelib.act(torch.ones(2, requires_grad=True))
y += 1
y.sum().backward()
"""
    asked = made(told(ASKING, cell))
    assert "sigmoid" in asked and "tanh" not in asked
