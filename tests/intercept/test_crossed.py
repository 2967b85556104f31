"""Errors that another process raised: the same cause and line as if it had been this one."""

from __future__ import annotations

import importlib.util
import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import autograd_explain
from autograd_explain.traceback_text import frames_in, ipython_frames_in, raised_in

WORK = """\
import torch

class Data(torch.utils.data.Dataset):
    def __init__(self, what):
        self.what = what

    def __len__(self):
        return 2

    def __getitem__(self, n):
        return self.what(n)

def array(n):
    x = torch.ones(3, requires_grad=True)
    return x.numpy() + n

def overwritten(n):
    w = torch.ones(3, requires_grad=True)
    y = w.exp()
    y.mul_(2)
    y.sum().backward()

def foreign(n):
    return {}[n]
"""
EXPECTED = {"array": ("numpy_needs_detach", 15), "overwritten": ("saved_value_overwritten", 21)}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (tmp_path / "crossing_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "crossing_work", raising=False)
    return importlib.import_module("crossing_work")


def in_loader(work: ModuleType, what: Any, workers: int = 1) -> None:
    list(DataLoader(work.Data(what), num_workers=workers, multiprocessing_context="fork"))


def in_executor(work: ModuleType, what: Any) -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        pool.submit(what, 1).result()


def in_pool(work: ModuleType, what: Any) -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.map(what, range(2))


def in_spawned(work: ModuleType, what: Any) -> None:
    torch.multiprocessing.spawn(what, nprocs=1)


def here(work: ModuleType, what: Any) -> None:
    for _ in DataLoader(work.Data(what), num_workers=0):
        pass


def explained(run: Callable[..., None], work: ModuleType, name: str) -> Any:
    with pytest.raises(Exception) as raised:
        run(work, getattr(work, name))
    found = autograd_explain.explain(raised.value)
    return None if found is None else found.to_dict() | {"shown": found.to_text()}


def surfaced(report: dict[str, Any]) -> tuple[str, int]:
    place = next(e["place"] for e in report["events"] if e["what"] in ("failed", "cause"))
    return Path(place["file"]).name, place["line"]


RUNS = [in_loader, in_executor, in_pool, in_spawned]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("run", RUNS[:3])
def test_the_cause_and_the_line_are_those_of_one_process(
    run: Callable[..., None], name: str, work: ModuleType
) -> None:
    cause, line = EXPECTED[name]
    alone = explained(here, work, name)
    report = explained(run, work, name)
    assert report["id"] == alone["id"] == cause
    assert surfaced(report) == surfaced(alone) == ("crossing_work.py", line)
    assert "Raised in another process" in report["shown"]
    assert "None" not in report["headline"] and "``" not in report["shown"]
    assert ("num_workers=0" in report["shown"]) is (name == "overwritten")
    if name == "array":  # what the source alone decides is told as always
        assert report["headline"] == alone["headline"]
        assert [r["edits"] for r in report["rewrites"]] == [r["edits"] for r in alone["rewrites"]]
        assert report["rewrites"][0]["outcome_reason"] == "the error was raised in another process"
    else:
        assert report["rewrites"] == [] and "step_between_backwards" in report["shown"]


@pytest.mark.timeout(120)
def test_a_spawned_process(work: ModuleType) -> None:
    report = explained(in_spawned, work, "array")
    assert report["id"] == "numpy_needs_detach"
    assert surfaced(report) == ("crossing_work.py", 15)
    assert "Raised in another process (process 0)" in report["shown"]


@pytest.mark.parametrize("run", RUNS[:3])
def test_what_is_none_of_autograds_stays_alone(run: Callable[..., None], work: ModuleType) -> None:
    assert explained(run, work, "foreign") is None


def test_a_file_that_changed_is_not_quoted(work: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as raised:
        in_pool(work, work.array)
    (tmp_path / "crossing_work.py").write_text(WORK.replace("x.numpy() + n", "x.tolist()\n"))
    import linecache

    linecache.checkcache()
    found = autograd_explain.explain(raised.value)
    assert found is not None and "tolist" not in found.to_text()
    assert all(not r.edits for r in found.diagnosis.rewrites)


#: As joblib 1.6 hands it over (loky), and ipyparallel 9.2 (IPython 9, with its colours).
LOKY = '''
"""
Traceback (most recent call last):
  File "/usr/lib/python3/dist-packages/joblib/externals/loky/process_executor.py", line 490, in _process_worker
    r = call_item()
        ^^^^^^^^^^^
  File "/usr/lib/python3/dist-packages/joblib/parallel.py", line 607, in <listcomp>
    return [func(*args, **kwargs) for func, args, kwargs in self.items]
            ^^^^^^^^^^^^^^^^^^^^^
  File "{file}", line 15, in array
    return x.numpy() + n
           ^^^^^^^^^
RuntimeError: {message}
"""'''  # noqa: E501
ENGINE = (
    "\x1b[31m------------------------------------------------------\x1b[39m\n"
    "\x1b[31mRuntimeError\x1b[39m            Traceback (most recent call last)\n"
    "\x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[1]\x1b[39m\x1b[32m, line 1\x1b[39m\n"
    "\x1b[32m----> \x1b[39m\x1b[32m1\x1b[39m work.array(\x1b[32m1\x1b[39m)\n\n"
    "\x1b[36mFile \x1b[39m\x1b[32m{file}:15\x1b[39m, in \x1b[36marray\x1b[39m\x1b[34m(n)\x1b[39m\n"
    "\x1b[32m     13\x1b[39m \x1b[38;5;28;01mdef\x1b[39;00m \x1b[34marray\x1b[39m(n):\n"
    "\x1b[32m     14\x1b[39m     x = torch.ones(\x1b[32m3\x1b[39m)\n"
    "\x1b[32m---> \x1b[39m\x1b[32m15\x1b[39m     \x1b[38;5;28;01mreturn\x1b[39;00m x.numpy()"
    " + n\n\n"
    "\x1b[31mRuntimeError\x1b[39m: {message}"
)
NUMPY = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."


def by_loky(file: str) -> Exception:
    error = RuntimeError(NUMPY)
    error.__cause__ = type("_RemoteTraceback", (Exception,), {})()
    error.__cause__.tb = LOKY.format(file=file, message=NUMPY)  # type: ignore[attr-defined]
    return error


def by_engines(file: str) -> Exception:
    error: Any = type("CompositeError", (Exception,), {"__module__": "ipyparallel.error"})("one")
    told = ENGINE.format(file=file, message=NUMPY)
    error.elist = [("RuntimeError", NUMPY, told, {"engine_id": n}) for n in range(2)]
    error.elist.append(("KeyError", "0", "", {"engine_id": 2}))
    shown: Any = type("AlreadyDisplayedError", (type(error),), {})("3 errors")
    shown.original_error = error
    return shown


def by_one_engine(file: str) -> Exception:
    error: Any = type("RemoteError", (Exception,), {"__module__": "ipyparallel.error"})("one")
    told = ENGINE.format(file=file, message=NUMPY)
    error.ename, error.evalue, error.traceback = "RuntimeError", NUMPY, told
    error.engine_info = {"engine_id": 4}
    return error


@pytest.mark.parametrize(
    ("made", "where"),
    [(by_loky, "process;"), (by_engines, "(engines 0, 1);"), (by_one_engine, "(engine 4);")],
)
def test_what_other_libraries_hand_over(
    made: Callable[[str], Exception], where: str, work: ModuleType
) -> None:
    found = autograd_explain.explain(made(str(work.__file__)))
    assert found is not None
    report = found.to_dict()
    assert report["id"] == "numpy_needs_detach"
    assert surfaced(report) == ("crossing_work.py", 15)
    assert f"process {where}".replace("process process", "process") in found.to_text()
    assert report["headline"] == explained(here, work, "array")["headline"]


def test_an_engines_other_errors_stay_alone() -> None:
    error = by_one_engine("x.py")
    vars(error).update(evalue="no such key", traceback=None)
    assert autograd_explain.explain(error) is None


def test_a_traceback_of_ipython_before_its_version_8() -> None:
    lines = "~/train.py in step(self)\n      6     x\n----> 7     y()\n".splitlines()
    (frame,) = ipython_frames_in(lines)
    assert (frame.line, frame.function, frame.source) == (7, "step", "y()")
    assert frame.file == str(Path("~/train.py").expanduser())


TEXT = '''\
"""
Traceback (most recent call last):
  File "/job/train.py", line 7, in work
    return first(x) + x.numpy()
                      ^^^^^^^^^
  File "/job/other.py", line 3, in Net.forward
  File "/job/last.py", line 4, in <module>
    y = x
RuntimeError: one
two: three
"""'''


def test_a_traceback_as_text() -> None:
    found = raised_in(TEXT)
    assert found is not None
    frames, kind, message = found
    assert (kind, message) == ("RuntimeError", "one\ntwo: three")
    assert [(f.file, f.line, f.function) for f in frames] == [
        ("/job/train.py", 7, "work"),
        ("/job/other.py", 3, "Net.forward"),
        ("/job/last.py", 4, "<module>"),
    ]
    first = frames[0]
    assert first.columns is not None
    assert first.source[slice(*first.columns)] == "x.numpy()"
    assert (frames[1].source, frames[2].source) == ("", "y = x")
    assert raised_in("nothing") is None and frames_in([]) == ()
