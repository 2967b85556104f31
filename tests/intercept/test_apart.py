"""What the session has put in the place of Python's and torch's own does not run for us."""

import builtins
import cProfile
import sys
import threading
import time

import pytest
import torch
from notebook import captured, shell_with_extension

from autograd_explain.intercept.apart import Apart

COUNTING = """
def {name}(*args, **kwargs):
    log.append({name!r})
    return old(*args, **kwargs)
"""


def function_of_the_session(name, old, log):
    namespace = {"__name__": "__main__", "log": log, "old": old}
    exec(compile(COUNTING.format(name=name), "<ipython-input-1-abc>", "exec"), namespace)
    return namespace[name]


@pytest.mark.parametrize(
    ("owner", "name"), [(builtins, "sorted"), (time, "monotonic"), (torch, "equal")]
)
def test_originals_stand_there_for_the_time(monkeypatch, owner, name):
    apart, log = Apart(), []
    apart.remember_torch()
    original = getattr(owner, name)
    theirs = function_of_the_session(name, original, log)
    monkeypatch.setattr(owner, name, theirs)
    with apart, apart:
        assert getattr(owner, name) is original
        assert apart.patched == (owner is torch)
    assert getattr(owner, name) is theirs and not log
    assert not apart.patched


def test_a_method_added_to_tensors_is_away_and_back(monkeypatch):
    apart, log = Apart(), []
    apart.remember_torch()
    theirs = function_of_the_session("exp", torch.Tensor.exp, log)
    monkeypatch.setattr(torch.Tensor, "exp", theirs)
    with apart:
        torch.ones(1).exp()
    assert torch.Tensor.exp is theirs and not log


def test_what_a_library_has_put_there_stays(monkeypatch):
    apart = Apart()
    monkeypatch.setattr(builtins, "sorted", threading.settrace)
    with apart:
        assert sorted is threading.settrace


def test_tracing_is_put_aside():
    def trace(frame, event, argument):
        seen.append(frame.f_code.co_name)

    seen = []
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with Apart():
            time.strftime("%Y")
            assert sys.gettrace() is None
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)
    assert "strftime" not in seen


def test_other_threads_keep_what_they_have_bound(monkeypatch):
    apart, log, stop = Apart(), [], threading.Event()
    theirs = function_of_the_session("sorted", sorted, log)
    monkeypatch.setattr(builtins, "sorted", theirs)
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with apart:
            assert builtins.sorted is theirs
    finally:
        stop.set()
        thread.join()


def test_a_profiler_in_c_goes_on():
    profile = cProfile.Profile()
    profile.enable()
    try:
        with Apart():
            len([])
        assert sys.getprofile() is profile
        sorted([2, 1])
    finally:
        profile.disable()
    assert any("sorted" in str(row.code) for row in profile.getstats())


def test_a_profiled_cell_is_explained_and_goes_on():
    cell = """
import cProfile, torch
x = torch.ones(2, requires_grad=True)
h = x * 2
with cProfile.Profile() as profile:
    h.grad
    h.exp()
calls = {str(row.code) for row in profile.getstats()}
"""
    with shell_with_extension() as shell, captured() as output:
        assert shell.run_cell(cell, store_history=True).success, output.getvalue()
        assert "intermediate_grad" in output.getvalue()
        assert any("exp" in call for call in shell.user_ns["calls"])
