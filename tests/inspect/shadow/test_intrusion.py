"""Attempts to reach out of a walk: each cell below is walked over, never run.

The program that really ran is harmless.  Before the history is asked for, a hostile cell is put
into the record of it, so whatever it does to the session, the walk did.
"""

# ruff: noqa: E501  (the hostile cells are easier to read on lines of their own)
from __future__ import annotations

import collections
import decimal
import enum
import gc
import itertools
import os
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from shadow_notebook import fresh_session, history_of, run
from torch import nn

from autograd_explain.incident import Incident
from autograd_explain.inspect.shadow import InferredHistory
from autograd_explain.program import Program, Source

FIRST = "import torch\nfrom torch import nn"
LAST = "w = torch.ones(2, requires_grad=True)\ny = w.exp()\ny += 1\ny.sum().backward()"
SECONDS = 3.0


def planted(attack: str, **live: Any) -> Incident:
    """A failure whose program claims to have run `attack`, with some live objects in reach."""
    with fresh_session():
        incident = run([FIRST, "pass", LAST])
    incident.namespace.update(live)
    first, _, last = incident.program.cells
    hostile = Source(2, None, attack, attack, f"<hostile {hash(attack)}>")
    return replace(incident, program=Program([first, hostile, last]))


def walked(attack: str, **live: Any) -> InferredHistory:
    """The history after it was asked everything, within its time."""
    incident = planted(attack, **live)
    history = history_of(incident)
    saved = next(history.graph.overwritten())
    start = time.perf_counter()
    history.maker(saved.node)
    history.writes(saved)
    history.creation(incident.namespace["y"])
    assert time.perf_counter() - start < SECONDS
    return history


@pytest.fixture(autouse=True)
def same_world(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """What no attempt may change: folder, files, output, threads, state of torch and of others."""
    (tmp_path / "there.txt").write_text("as it was")
    before_folder = os.getcwd()
    os.chdir(tmp_path)
    before = _world(tmp_path)
    capfd.readouterr()
    try:
        yield
        gc.collect()
        assert _world(tmp_path) == before
        assert capfd.readouterr() == ("", "")
    finally:
        os.chdir(before_folder)


def _world(folder: Path) -> dict[str, object]:
    module: Any = torch.nn.modules.module
    return {
        "folder": os.getcwd(),
        "files": sorted((p.name, p.read_bytes()) for p in folder.iterdir()),
        "threads": threading.active_count(),
        "environment": {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")},
        "precision": decimal.getcontext().prec,
        "random": (torch.get_rng_state().tolist(), str(np.random.get_state()), random.getstate()),
        "modes": (
            torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled("cpu"), torch._C._len_torch_function_stack(),
            torch._C._len_torch_dispatch_stack(), torch.get_default_dtype(),
            torch._C._autograd._top_saved_tensors_default_hooks(False),
        ),
        "hooks": [len(getattr(module, n) or ()) for n in vars(module) if n.startswith("_global_")],
        "names": [
            sorted(vars(m)) for m in (torch, torch.nn, torch.nn.functional, nn.modules.linear)
        ],
        "classes": [sorted(vars(c)) for c in (torch.Tensor, nn.Module, nn.Linear, object)],
        "registered": len(torch.distributions.kl._KL_REGISTRY),
        "validation": torch.distributions.Distribution._validate_args,
    }  # fmt: skip


REACHING_OUT = {
    "print": "print('hello')\ndisplay(1)\nhelp(int)\nbreakpoint()",
    "input": "answer = input('? ')\nimport getpass\ngetpass.getpass()",
    "exit": "import sys\nsys.exit(3)\nexit()\nquit()\nraise SystemExit(1)",
    "interrupt": "raise KeyboardInterrupt",
    "sleep": "import time\ntime.sleep(30)\nfrom time import sleep\nsleep(30)",
    "folder": "import contextlib\nc = contextlib.chdir('/')\nc.__enter__()",
    "output": "import contextlib, io\nwith contextlib.redirect_stdout(None):\n    print('x')",
    "memory map": (
        "import numpy as np\n"
        "m = np.lib.format.open_memmap('map.npy', mode='w+', dtype='f4', shape=(3,))"
    ),
    "array file": (
        "import numpy as np\nf = open('a.npy', 'wb')\nnp.lib.format.write_array(f, np.ones(2))\n"
        "np.ones(2).dump('a.pkl')\nnp.savetxt('a.txt', np.ones(2))"
    ),
    "benchmark": (
        "import torch.utils.benchmark as b\nb.Timer(\"open('timer.txt', 'w')\").timeit(1)"
    ),
    "environment report": "import torch.utils.collect_env as c\nc.main()",
    "trace file": (
        "import torch.autograd.profiler as p\nwith p.profile() as prof:\n    torch.ones(2) + 1\n"
        "prof.export_chrome_trace('trace.json')"
    ),
    "graph folder": (
        "import torch.fx\ng = torch.fx.symbolic_trace(nn.Linear(2, 2))\ng.to_folder('graph')"
    ),
    "shared library": "torch.ops.load_library('there.txt')\ntorch.classes.load_library('there.txt')",
    "type hints": (
        "import typing\ndef f(x: \"__import__('os').mkdir('hinted')\"): pass\n"
        "typing.get_type_hints(f, globalns={})\n"
        "typing.get_type_hints(f)"
    ),
    "thread": "import threading\nthreading.Thread(target=print).start()\nimport _thread\n"
    "_thread.start_new_thread(print, ('x',))",
    "os by the back door": (
        "found = nn.Linear.forward.__globals__\nos = found['__builtins__']['__import__']('os')\n"
        "os.mkdir('made')"
    ),
    "subclasses": (
        "for kind in object.__subclasses__():\n    if kind.__name__ == 'Popen':\n"
        "        kind(['touch', 'popen.txt'])"
    ),
    "code": "import types\ng = types.FunctionType((lambda: 1).__code__, {})\ng()",
}


@pytest.mark.parametrize("name", REACHING_OUT)
def test_reaches_nothing_outside(name: str) -> None:
    walked(REACHING_OUT[name])


CHANGING = {
    "module dict": "torch.__dict__['ag_x'] = 1\ntorch.nn.__dict__.update(ag_x=1)",
    "globals of a function": (
        "nn.Linear.forward.__globals__['ag_x'] = 1\n"
        "getattr(nn.Linear.forward, '__globals__')['ag_x'] = 1\n"
        "import operator\noperator.attrgetter('__globals__')(nn.Linear.forward)['ag_x'] = 1\n"
        "object.__getattribute__(nn.Linear.forward, '__globals__')['ag_x'] = 1"
    ),
    "class attributes": (
        "type.__setattr__(nn.Module, 'ag_x', 1)\nsetattr(torch.Tensor, 'ag_x', 1)\n"
        "nn.Linear.ag_x = 1\nnn.Module.forward = None\n"
        "class M(nn.Module):\n    def __init_subclass__(cls):\n        nn.Linear.ag_x = 2\n"
        "class N(M): pass"
    ),
    "decorators": (
        "def patch(cls):\n    nn.Linear.ag_x = cls\n    torch.ag_x = cls\n    return cls\n"
        "@patch\nclass A: pass"
    ),
    "precision": "import decimal\ndecimal.getcontext().prec = 3\ndecimal.setcontext(decimal.Context())",
    "inference mode": "m = torch.inference_mode()\nm.__enter__()",
    "grad mode": "torch.set_grad_enabled(False)\nm = torch.no_grad()\nm.__enter__()",
    "autocast": "m = torch.autocast('cpu')\nm.__enter__()",
    "saved hooks": (
        "h = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)\nh.__enter__()\n"
        "torch.autograd.graph.save_on_cpu().__enter__()"
    ),
    "device mode": "d = torch.device('meta')\nd.__enter__()\ntorch.set_default_device('meta')",
    "function mode": (
        "from torch.overrides import TorchFunctionMode\nclass M(TorchFunctionMode):\n"
        "    def __torch_function__(self, f, t, a=(), k=None):\n        return f(*a, **(k or {}))\n"
        "m = M()\nm.__enter__()"
    ),
    "dispatch mode": (
        "from torch.utils._python_dispatch import TorchDispatchMode\nclass M(TorchDispatchMode):\n"
        "    def __torch_dispatch__(self, f, t, a=(), k=None):\n        return f(*a, **(k or {}))\n"
        "m = M()\nm.__enter__()"
    ),
    "generators": (
        "import random, numpy as np\ntorch.manual_seed(5)\ntorch.rand(3)\nrandom.seed(5)\n"
        "np.random.seed(5)\nnp.random.rand(3)\ntorch.seed()\ntorch.default_generator.seed()\n"
        "torch.random.manual_seed(6)"
    ),
    "module hooks": (
        "nn.modules.module.register_module_forward_hook(lambda *a: None)\n"
        "nn.modules.module._global_forward_hooks[7] = print"
    ),
    "divergences": (
        "from torch.distributions import kl, Normal\n@kl.register_kl(Normal, Normal)\n"
        "def mine(p, q): return 0\n"
        "torch.distributions.Distribution.set_default_validate_args(False)"
    ),
    "threads of torch": "torch.set_num_threads(1)\ntorch.set_printoptions(precision=1)",
    "suspended": (
        "def g():\n    try:\n        with torch.no_grad():\n            yield 1\n"
        "    finally:\n        torch.ones(2).add_(1)\n        print('closed')\n"
        "a = g()\nnext(a)"
    ),
    "deleted later": (
        "class Loud:\n    def __init__(self):\n        self.t = torch.ones(2)\n"
        "    def __del__(self):\n        self.t.add_(1)\n        print('gone')\n"
        "        for i in range(100):\n            self.t = self.t + i\n"
        "kept = [Loud(), Loud()]\nkept[0].me = kept[0]"
    ),
    "effects in properties": (
        "class P:\n    @property\n    def x(self):\n        torch.ag_x = 1\n"
        "        open('p.txt', 'w').write('x')\n        return 1\n"
        "    def __getattr__(self, name):\n        open('g.txt', 'w').write(name)\n        return name\n"
        "p = P()\np.x\np.anything\nstr(p), repr(p), hash(p), p == p, len([p])"
    ),
}


@pytest.mark.parametrize("name", CHANGING)
def test_changes_no_state(name: str) -> None:
    before = torch.get_num_threads(), torch._tensor_str.PRINT_OPTS.precision
    walked(CHANGING[name])
    assert (torch.get_num_threads(), torch._tensor_str.PRINT_OPTS.precision) == before


def test_contexts_left_open_end_with_the_walk() -> None:
    """A guard of torch's in C++ puts back what it found when the object is deleted."""
    with torch.autocast("cpu", torch.bfloat16):
        history = walked(
            "m = torch.inference_mode()\nm.__enter__()\n"
            "def g():\n    with torch.inference_mode():\n        yield 1\n"
            "a = g()\nnext(a)\n"
            "import torch.autograd.forward_ad as f\nd = f.dual_level()\nd.__enter__()"
        )
        del history
        gc.collect()
        assert torch.is_autocast_enabled("cpu") and not torch.is_inference_mode_enabled()
        assert torch.autograd.forward_ad._current_level == -1


@pytest.mark.parametrize(
    "attack",
    [
        "kept = [torch.ones(16 << 20) for _ in range(40)]",
        "kept = [bytearray(b'x') * (64 << 20) for _ in range(40)]",
        "import numpy as np\nkept = [np.ones(300_000) for _ in range(2000)]",
        "kept = ['x' * 99_000 + str(i) for i in range(20_000)]",
    ],
)
def test_memory_is_bounded(attack: str) -> None:
    """Also where our own looking is hidden from function modes, as it is in a report."""
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with torch._C.DisableTorchFunction():
        walked(attack)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 << 10


def test_keys_are_not_compared_after_the_walk() -> None:
    """The twin of a key's `__eq__` would run, though the walk is over."""
    cell = (
        "class Key:\n    def __eq__(self, other): return True\n    def __hash__(self): return 1\n"
        "keys = {Key(): 1}"
    )
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(cell, namespace)
    history = walked(cell, keys=namespace["keys"], Key=namespace["Key"])
    assert history.reading.pairs is not None


ENDLESS = {
    "generator": "def g():\n    while True:\n        yield 1\nfor v in g():\n    a = v\nlist(g())",
    "counter": "import itertools, collections\ncollections.deque(itertools.count(), maxlen=1)",
    "cycle": "import itertools, collections\ncollections.Counter(itertools.cycle('ab'))",
    "filter": "import itertools\nnext(filter(None, itertools.repeat(0)))",
    "sentinel": "import collections\ncollections.deque(iter(int, 1), maxlen=0)",
    "reduce": (
        "import functools, itertools, operator\nfunctools.reduce(operator.add, itertools.count())"
    ),
    "extend": "import itertools\n[].extend(itertools.count())\nset().update(itertools.count())",
    "join": "import itertools\n''.join(itertools.repeat('a'))",
    "recursion": "def f(n):\n    return f(n + 1)\nf(0)",
    "mutual": "class A:\n    def __getattr__(self, n):\n        return getattr(self, n + 'x')\nA().b",
    "iterator": (
        "class I:\n    def __iter__(self): return self\n    def __next__(self): return 1\n"
        "list(I())\nfor i in I(): pass\nsum(I())"
    ),
    "while": "n = 0\nwhile n >= 0:\n    n += 1",
    "try": "while True:\n    try:\n        while True: pass\n    except BaseException:\n        continue",
    "finally": "def f():\n    while True:\n        try:\n            return 1\n"
    "        finally:\n            continue\nf()",
    "pow": "pow(7, 10 ** 9)\nimport operator\noperator.pow(7, 10 ** 9)\n(7).__pow__(10 ** 9)",
    "factorial": "import math\nmath.factorial(10 ** 7)\nmath.comb(10 ** 7, 5 * 10 ** 6)",
    "fraction": "from fractions import Fraction\nFraction(3, 7) ** (10 ** 8)",
    "regular expression": "import re\nre.match('(a|a)*b', 'a' * 40)\nre.compile('(a+)+b').match('a' * 60)",
    "text": "s = 'a'.ljust(10 ** 10)\nb = bytes(10 ** 10)\nf = f'{1:{10 ** 10}}'\np = '%10000000000d' % 1",
    "sleepless": "import time\nend = time.time() + 60\nwhile time.time() < end: pass",
    "permutations": "import itertools\nlist(itertools.permutations(range(14)))",
    "sorting": "sorted(range(10 ** 9))\nlist(reversed(range(10 ** 9)))\nmax(range(10 ** 9))",
    "decomposition": "m = torch.rand(600, 600)\nfor _ in range(50):\n    torch.linalg.svd(m)",
    "convolution": (
        "x = torch.rand(1, 64, 64, 64)\nc = nn.Conv2d(64, 64, 7, padding=3)\n"
        "for _ in range(40):\n    x = c(x)"
    ),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ENDLESS)
def test_ends_within_its_budget(name: str) -> None:
    walked(ENDLESS[name])


class Shade(enum.Enum):
    DARK = [1]  # noqa: RUF012  the value is there to be changed


def test_live_objects_stay_as_they_are() -> None:
    """Objects that the program's record does not make are only looked at."""
    table, rows = {"a": [1]}, [1, 2]
    with torch.random.fork_rng(devices=[]):
        layer = nn.Linear(2, 2)
    generator, numbers = torch.Generator().manual_seed(3), np.random.default_rng(3)
    drawn: list[int] = []

    def draw() -> Iterator[int]:
        for i in range(9):
            drawn.append(i)
            yield i

    live = {
        "table": table, "rows": rows, "append": rows.append, "generator": generator,
        "numbers": numbers, "count": itertools.count(), "items": iter(rows), "running": draw(),
        "pairs": zip(rows, rows, strict=True), "mapped": map(drawn.append, [5]), "Shade": Shade,
        "dark": Shade.DARK, "data": bytearray(b"abc"), "queue": collections.deque([1]),
        "space": SimpleNamespace(x=[1]), "layer": layer, "array": np.ones(3),
        "tensor": torch.ones(3), "node": (torch.ones(1, requires_grad=True) * 2).grad_fn,
        "storage": torch.ones(2).untyped_storage(), "module": torch.nn.functional,
    }  # fmt: skip
    attack = (
        "table['b'] = 1\ntable['a'].append(2)\nrows.append(3)\nappend(4)\n"
        "torch.rand(2, generator=generator)\nnumbers.random(3)\nnumbers.shuffle(rows)\n"
        "next(count)\nnext(items)\nnext(running)\nlist(running)\nfor p in pairs: pass\n"
        "list(mapped)\nShade.DARK.value.append(2)\ndark.value.append(3)\ndark.extra = 1\n"
        "data.extend(b'x')\ndata[0] = 1\nqueue.append(2)\nspace.x.append(2)\nspace.y = 1\n"
        "layer.weight.data.zero_()\nlayer.extra = 1\nnn.init.zeros_(layer.weight)\n"
        "array[0] = 5\narray += 1\ntensor.add_(1)\ntensor.data.fill_(7)\ntensor.tag = 1\n"
        "storage.fill_(0)\nstorage.resize_(0)\nnode.register_hook(print)\n"
        "node.metadata['x'] = 1\nmodule.relu = None\n"
    )
    state = generator.get_state().tolist(), str(numbers.bit_generator.state)
    weight = live["layer"].weight.detach().clone()
    walked(attack, **live)
    assert (table, rows) == ({"a": [1]}, [1, 2])
    assert (generator.get_state().tolist(), str(numbers.bit_generator.state)) == state
    assert next(live["count"]) == 0 and next(live["items"]) == 1 and not drawn
    assert list(live["pairs"]) == [(1, 1), (2, 2)]
    assert Shade.DARK.value == [1] and not hasattr(Shade.DARK, "extra")
    assert live["data"] == b"abc" and list(live["queue"]) == [1]
    assert vars(live["space"]) == {"x": [1]}
    assert torch.equal(live["layer"].weight, weight) and not hasattr(live["layer"], "extra")
    assert live["array"].tolist() == [1, 1, 1] and live["tensor"].tolist() == [1, 1, 1]
    assert live["tensor"]._version == 0 and not hasattr(live["tensor"], "tag")
    assert live["storage"].nbytes() == 8 and "x" not in live["node"].metadata


def test_the_users_hooks_and_modes_do_not_see_the_walk() -> None:
    """What the user switched on for the session is for the session's own operations."""
    seen: list[str] = []

    class Spy(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            seen.append("function mode")
            return func(*args, **(kwargs or {}))

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        seen.append("saved tensor hook")
        return tensor

    incident = planted("m = nn.Linear(2, 2)\nz = m(torch.ones(2)).exp().sum()")
    history = history_of(incident)
    saved = next(history.graph.overwritten())
    handle = nn.modules.module.register_module_forward_hook(lambda *a: seen.append("module hook"))
    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t), Spy():
            seen.clear()
            steps = history.steps
            assert history.maker(saved.node) is not None
            assert torch._C._len_torch_function_stack() == 1
            found = list(seen)
    finally:
        handle.remove()
    # Looking at the live tensors passes the function mode; running stand-ins passes none.
    assert steps and set(found) <= {"function mode"}


def test_patched_library_classes_are_not_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method of the user's in a class of torch's is the user's code."""
    seen: list[str] = []
    namespace: dict[str, Any] = {"__name__": "__main__", "seen": seen, "old": nn.Linear.forward}
    exec(
        "def forward(self, x):\n    seen.append('forward')\n    return old(self, x)\n"
        "def flip(self):\n    seen.append('flip')\n    return -self\n"
        "def add(self, other):\n    seen.append('add')\n    return self.add(other)",
        namespace,
    )
    monkeypatch.setattr(nn.Linear, "forward", namespace["forward"])
    monkeypatch.setattr(torch.Tensor, "ag_flip", namespace["flip"], raising=False)
    walked("m = nn.Linear(2, 2)\nz = m(torch.ones(2))\nq = torch.ones(2).ag_flip()")
    assert seen == []
    monkeypatch.setattr(torch.Tensor, "__add__", namespace["add"])
    incident = planted("z = torch.ones(2) + 1")
    history = history_of(incident)
    seen.clear()
    history.maker(next(history.graph.overwritten()).node)
    assert seen == []
