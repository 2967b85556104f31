"""Copies of the session: cheap, few, and gone when they are no longer wanted."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
import torch

from autograd_explain.model import Outcome
from autograd_explain.verification import Checkpoint, Loaded, verify

FAILING = """
import torch
w = torch.ones(3, requires_grad=True)
y = w.exp()
y.mul_(2)
y.sum().backward()
"""
EDIT = ("y.mul_(2)", "y = y.mul(2)")


def children() -> set[int]:
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid():
                found.add(int(name))
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_it_ends_when_discarded_twice_or_forgotten():
    before = children()
    checkpoint = Checkpoint.take({})
    assert len(children() - before) == 1 and checkpoint.alive
    checkpoint.discard()
    checkpoint.discard()
    assert children() == before and not checkpoint.alive
    checkpoint = Checkpoint.take({})
    del checkpoint
    gc.collect()
    assert children() == before


def test_never_more_than_two_are_alive():
    before = children()
    kept = [Checkpoint.take({}) for _ in range(5)]
    assert len(children() - before) == 2
    assert [c.alive for c in kept] == [False, False, False, True, True]
    for checkpoint in kept:
        checkpoint.discard()
    assert children() == before


def test_it_is_quick():
    times = []
    for _ in range(5):
        start = time.perf_counter()
        checkpoint = Checkpoint.take({})
        times.append(time.perf_counter() - start)
        checkpoint.discard()
    assert sorted(times)[2] < 0.25


def test_one_checkpoint_serves_several_verifications(play):
    played = play(FAILING)
    for _ in range(3):
        assert played.try_out(EDIT).outcome is Outcome.VERIFIED
    assert played.checkpoint.alive


def test_a_checkpoint_that_was_killed_is_no_obstacle(play):
    played = play(FAILING)
    os.kill(played.checkpoint._child.pid, signal.SIGKILL)
    rewrite = played.try_out(EDIT)
    assert rewrite.outcome in (Outcome.VERIFIED, Outcome.NOT_TRIED)


def test_objects_of_the_session_are_there(play):
    """What no replay could make again: the state is copied, not recomputed."""
    played = play(
        "import torch\ncounter = iter(range(10))\nnext(counter)\nx = torch.randn(3)",
        FAILING.replace("w.exp()", "w.exp() * x * next(counter)"),
    )
    assert played.try_out(EDIT).outcome is Outcome.VERIFIED


def test_nothing_is_left_after_a_hundred_failing_cells(play):
    played = play(FAILING)
    played.checkpoint.discard()
    space = {"__name__": "__main__"}
    before, files = children(), descriptors()
    proposal = played.proposal(EDIT)
    memory = None
    for number in range(100):
        checkpoint = Checkpoint.take(space)
        with contextlib.suppress(RuntimeError):
            exec(FAILING, space)
        if number % 10 == 0:
            request = played.request(checkpoint=checkpoint)
            (rewrite,) = verify([proposal], request)
            assert rewrite.outcome is Outcome.VERIFIED
        checkpoint.discard()
        if number == 20:
            memory = resident()
    assert children() == before and descriptors() == files
    assert resident() - memory < 20 << 20


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


SLEEPS = FAILING + "import time\ntime.sleep(60)\n"


def test_the_budget_ends_it(play):
    before = children()
    start = time.monotonic()
    rewrite = play(SLEEPS).try_out(EDIT, seconds=1.0)
    assert time.monotonic() - start < 3
    assert rewrite.outcome is Outcome.NOT_TRIED and rewrite.reason.key == "budget"
    assert len(children() - before) <= 1


def test_known_durations_save_a_hopeless_replay(play):
    played = play("import torch", FAILING, checkpoint=False)
    start = time.monotonic()
    rewrite = played.try_out(EDIT, durations={1: 600.0})
    assert rewrite.reason.key == "budget" and time.monotonic() - start < 0.1


def test_memory_is_bounded(play):
    hungry = FAILING + "import time\nz = torch.ones(600 << 18)\ntime.sleep(60)\n"
    rewrite = play(hungry).try_out(EDIT, megabytes=200)
    assert rewrite.outcome is Outcome.NOT_TRIED and rewrite.reason.key == "memory"


def test_libraries_are_loaded_while_the_session_goes_on(play):
    """An answer that was not waited for is not waited for later."""
    played = play("import torch", FAILING)
    checkpoint = played.checkpoint
    checkpoint.begin_to_load(Loaded(("this",), tuple(sys.path)))
    for _ in range(2):
        assert verify([played.proposal(EDIT)], played.request())[0].outcome is Outcome.VERIFIED
    started = time.monotonic()
    checkpoint.load(Loaded(("this",), tuple(sys.path)), 60.0)
    assert time.monotonic() - started < 30.0


def test_a_crash_of_the_replay_is_survived(play):
    crash = "y = y.mul(2)\nimport ctypes\nctypes.string_at(0)"
    rewrite = play(FAILING).try_out(("y.mul_(2)", crash))
    assert rewrite.outcome is Outcome.NOT_TRIED and rewrite.reason.key == "crashed"


@pytest.fixture
def interruptible():
    """Ctrl-C is heard as in a kernel; a shell's background jobs begin with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("checkpoint", [True, False])
def test_interrupting_ends_it_at_once(play, checkpoint, interruptible):
    before = children()
    played = play(SLEEPS, checkpoint=checkpoint)
    timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    rewrite = played.try_out(EDIT)
    assert time.monotonic() - start < 2
    assert rewrite.outcome is Outcome.NOT_TRIED and rewrite.reason.key == "interrupted"
    assert children() == before


def test_it_dies_with_the_session(tmp_path):
    """Even when the session is killed and nobody closes anything."""
    script = textwrap.dedent(
        """
        import os, signal, torch
        from autograd_explain.verification import Checkpoint
        checkpoint = Checkpoint.take({})
        print(checkpoint._child.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid = int(done.stdout)
    for _ in range(50):
        if not os.path.exists(f"/proc/{pid}") or _zombie(pid):
            return
        time.sleep(0.05)
    pytest.fail("the copy outlived its session")


def _zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_without_torch_nothing_is_copied(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    assert Checkpoint.take({}) is None


def test_with_a_device_initialised_nothing_is_copied(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert Checkpoint.take({}) is None


def test_the_random_state_is_that_of_the_session(play):
    """`random` seeds itself anew in a fork; the replay must not notice."""
    played = play(
        "import random, torch\nrandom.seed(3)",
        FAILING.replace("w.exp()", "w.exp() * random.random()\nseen = random.random()")
        + "assert abs(seen - 0.544229225295952) < 1e-9",
    )
    assert played.try_out(EDIT).outcome is Outcome.VERIFIED
