"""A walk leaves nothing behind: no effect, no changed object, no changed state, no delay."""

from __future__ import annotations

import gc
import os
import random
import sys
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from notebook import cells_of
from shadow_notebook import fresh_session, history_of, run

EFFECTS = """# %%
import os, sys, random, time, subprocess, threading, warnings, atexit, logging, socket, shutil
import builtins, operator, pathlib, pickle, json, io, tempfile
import numpy as np
import torch
from torch import nn
from pathlib import Path
log = []
folder = Path(FOLDER)
# %%
def note(text):
    log.append(text)
    with open(folder / "open.txt", "a") as f:
        f.write(text)
    (folder / "path.txt").open("a").write(text)
    os.system(f"echo {text} >> {folder}/system.txt")
    subprocess.run(["sh", "-c", f"echo {text} >> {folder}/process.txt"])
    torch.save({"a": 1}, folder / f"saved{len(list(folder.iterdir()))}.pt")
    np.save(folder / f"saved{len(list(folder.iterdir()))}.npy", np.ones(2))
    np.ones(2).tofile(folder / f"to{len(list(folder.iterdir()))}.bin")
    pickle.dump([1], open(folder / f"p{len(list(folder.iterdir()))}.pkl", "wb"))
    eval("log.append('eval')")
    exec("log.append('exec')")
    getattr(os, "makedirs")(folder / f"made{len(list(folder.iterdir()))}")
    operator.methodcaller("append", "methodcaller")(log)
    list(map(log.append, ["mapped"]))
    os.environ["AG_WALK_TEST"] = os.environ.get("AG_WALK_TEST", "") + "x"
    sys.path.append(text)
    sys.modules["ag_walk_test_module"] = log
    threading.Thread(target=log.append, args=("thread",)).start()
    torch.backends.ag_walk_test = text
    torch.Tensor.ag_walk_test = text
    nn.Linear.ag_walk_test = getattr(nn.Linear, "ag_walk_test", 0) + 1
    torch.set_num_threads(torch.get_num_threads())
    warnings.warn(text)
    logging.getLogger("ag").warning(text)


class Loud:
    count = 0

    def __init__(self):
        type(self).count += 1

    def __del__(self):
        log.append("deleted")

    def __hash__(self):
        log.append("hashed")
        return 1

    def __call__(self, x):
        note("called")
        return x
# %%
np.random.seed(0)
torch.manual_seed(0)
random.seed(0)
note("start")
loud = Loud()
w = torch.rand(3, requires_grad=True)
lin = nn.Linear(3, 3)
opt = torch.optim.SGD([w, *lin.parameters()], lr=0.1)
y = loud(lin(w).exp())
np.random.rand(3), random.random(), torch.rand(2)
y.sum().backward(retain_graph=True)
opt.step()
opt.zero_grad()
del loud
y += 1
y.sum().backward()
"""


def _everything(folder: Path) -> dict[str, object]:
    return {
        "files": sorted((p.name, p.stat().st_size) for p in folder.iterdir()),
        "environment": dict(os.environ),
        "path": list(sys.path),
        "torch": torch.get_rng_state().tolist(),
        "numpy": str(np.random.get_state()),
        "random": random.getstate(),
        "grad": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
        "patched": (torch.Tensor.ag_walk_test, torch.nn.Linear.ag_walk_test),
        "anomaly": torch.is_anomaly_enabled(),
    }


def test_no_effect_outside_itself(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = EFFECTS.replace("FOLDER", repr(str(tmp_path)))
    before_path, before_environment = list(sys.path), dict(os.environ)
    try:
        with fresh_session():
            incident = run(cells_of(text))
        assert "modified by an inplace operation" in incident.message
        time.sleep(0.05)
        names = incident.namespace
        tensors = [names["w"], names["y"], *names["lin"].parameters()]
        state = _everything(tmp_path)
        log, count = list(names["log"]), names["Loud"].count
        values = [(t.detach().clone(), t._version, t.is_leaf) for t in tensors]
        gradients = [t.grad is None for t in tensors if t.is_leaf]
        torch.set_grad_enabled(False)
        state["grad"] = False
        capfd.readouterr()
        history = history_of(incident)
        saved = next(history.graph.overwritten())
        writes = history.writes(saved)
        gc.collect()
        time.sleep(0.05)
        assert writes[0].place.line == 15
        assert _everything(tmp_path) == state
        assert names["log"] == log
        assert names["Loud"].count == count
        for tensor, (value, version, leaf) in zip(tensors, values):
            assert torch.equal(tensor.detach(), value)
            assert (tensor._version, tensor.is_leaf) == (version, leaf)
        assert [t.grad is None for t in tensors if t.is_leaf] == gradients
        assert capfd.readouterr() == ("", "")
    finally:
        torch.set_grad_enabled(True)
        del torch.Tensor.ag_walk_test, torch.nn.Linear.ag_walk_test, torch.backends.ag_walk_test
        sys.path[:] = before_path
        sys.modules.pop("ag_walk_test_module", None)
        os.environ.clear()
        os.environ.update(before_environment)


ENDLESS = {
    "while": "while True:\n    n = n + 1 if 'n' in dir() else 0\n    if n > limit: break",
    "numbers": "z = 3 ** 100000\nz2 = [0] * 30_000_000\nlen(z2)",
    "recursion": "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nf(800)",
    "nested": "t = 0\nfor a in range(60):\n  for b in range(60):\n    for c in range(60):\n      t += a * b * c",
    "comprehension": "t = [i * j for i in range(2000) for j in range(300)]",
    "generator": "import itertools\nt = sum(1 for _ in itertools.islice(itertools.count(), 300_000))",
    "map": "t = list(map(lambda i: i + 1, range(300_000)))",
    "sorted": "t = sorted(range(300_000), key=lambda i: -i)",
    "tensors": "t = [torch.ones(300, 300) @ torch.ones(300, 300) for _ in range(50)]",
    "deep": "m = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(400)])\nm(torch.ones(4))",
    "big": "t = torch.zeros(3000, 3000) + 1",
    "numpy": "import numpy as np\nt = np.zeros((3000, 3000)) + 1",
    "string": "t = 'ab' * 5_000_000",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_long_programs_are_bounded(name: str) -> None:
    last = "w = torch.ones(2, requires_grad=True)\ny = w.exp()\ny += 1\ny.sum().backward()"
    cells = ["import torch\nlimit = 50_000", ENDLESS[name], last]
    with fresh_session():
        incident = run(cells)
    history = history_of(incident)
    saved = next(history.graph.overwritten())
    start = time.perf_counter()
    maker = history.maker(saved.node)
    assert time.perf_counter() - start < 1.5
    assert maker is not None and maker.place.line == 2
    assert maker is not None


def test_many_cells_are_bounded() -> None:
    """A long session: what ran last is what counts."""
    cell = "for _ in range(100):\n    q = (torch.ones(3) * {n}).sum()"
    last = "w = torch.ones(2, requires_grad=True)\ny = w.exp()\ny += 1\ny.sum().backward()"
    cells = ["import torch", *[cell.format(n=n) for n in range(150)], last]
    with fresh_session():
        incident = run(cells)
    history = history_of(incident)
    start = time.thread_time()
    maker = history.maker(next(history.graph.overwritten()).node)
    assert time.thread_time() - start < 1.5
    assert maker is not None and maker.place.line == 2


def test_nothing_live_is_kept() -> None:
    cells = [
        "import torch\nw = torch.ones(2, requires_grad=True)\ny = w.exp()\ny += 1\ny.sum().backward()"
    ]
    with fresh_session():
        incident = run(cells)
    history = history_of(incident)
    history.writes(next(history.graph.overwritten()))
    held = weakref.ref(incident.namespace["y"])
    twin = weakref.ref(history.reading.walk.globals["y"])
    incident.namespace.clear()
    incident.exception.__traceback__ = None
    del history, incident
    gc.collect()
    assert held() is None
    assert twin() is None
