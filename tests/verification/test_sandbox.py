"""A replay has no effect outside: what it writes stays inside, what else wants one is not tried."""

import os
import signal
import socket
import sys

import pytest

from autograd_explain.model import Outcome
from autograd_explain.verification import verifier

FAILING = """
import torch
w = torch.ones(3, requires_grad=True)
y = w.exp()
y.mul_(2)
y.sum().backward()
"""
EDIT = ("y.mul_(2)", "y = y.mul(2)")


def refusal(play, statement, *, earlier=False, checkpoint=True):
    """The outcome when the statement stands after the failing one, where only a replay gets to."""
    text = FAILING.replace("y.sum()", f"{statement}\ny.sum()") if earlier else FAILING + statement
    return play(text, checkpoint=checkpoint).try_out(EDIT)


@pytest.mark.parametrize(
    ("statement", "key"),
    [
        ("import sqlite3; sqlite3.connect('{path}')", "needs_file"),
        ("import socket; socket.create_connection(('127.0.0.1', 9))", "needs_network"),
        ("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", "needs_network"),
        ("import urllib.request as u; u.urlopen('http://127.0.0.1:9')", "needs_network"),
        ("import subprocess; subprocess.run(['touch', '{path}'])", "needs_subprocess"),
        ("import os; os.system('touch {path}')", "needs_subprocess"),
        ("import os; os.fork()", "needs_subprocess"),
        ("import os; os.execv('/bin/true', ['true'])", "needs_subprocess"),
        ("import os; os.kill(os.getppid(), 15)", "needs_subprocess"),
        ("import ctypes; ctypes.CDLL('libc.so.6')", "needs_subprocess"),
        ("import multiprocessing as m; m.Process(target=print).start()", "needs_subprocess"),
        (
            "import multiprocessing as m; m.get_context('spawn').Process(target=print).start()",
            "needs_subprocess",
        ),
        ("input('?')", "needs_input"),
    ],
)
def test_effects_are_refused(play, tmp_path, statement, key):
    folder = tmp_path / "folder"
    folder.mkdir()
    victim = folder / "victim.txt"
    victim.write_text("keep")
    path = folder / "new"
    text = statement.format(path=path, victim=victim, folder=folder)
    rewrite = refusal(play, f"try:\n    {text}\nexcept Exception:\n    pass")
    assert rewrite.outcome is Outcome.NOT_TRIED
    assert rewrite.reason.key == key
    assert victim.read_text() == "keep" and not path.exists()


def test_reading_and_memory_files_are_allowed(play, tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("3.0")
    code = f"""
import io, os, socket, sqlite3, threading
value = float(open({str(path)!r}).read())
torch.save(w, io.BytesIO())
open(os.devnull, 'w').write('x')
socket.socketpair()
sqlite3.connect(':memory:')
thread = threading.Thread(target=print); thread.start(); thread.join()
"""
    assert refusal(play, code).outcome is Outcome.VERIFIED


@pytest.mark.skipif(sys.platform != "linux", reason="needs a system call filter")
def test_c_code_cannot_write_either(play, tmp_path):
    """No audit event tells of this write; the kernel refuses it."""
    path = tmp_path / "c.txt"
    code = f"""
import ctypes
libc = ctypes.CDLL(None)
fd = libc.open({str(path).encode()!r}, 0o102, 0o600)
assert fd < 0
assert libc.unlink(b{str(tmp_path)!r}) < 0
"""
    rewrite = refusal(play, code)
    assert rewrite.outcome is Outcome.VERIFIED
    assert not path.exists()


KILL = """
import ctypes, os, signal
if os.getpid() != {home}:
    ctypes.CDLL(None).kill({home}, signal.SIGUSR1)
    ctypes.CDLL(None).tgkill({home}, {home}, signal.SIGUSR1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a system call filter")
@pytest.mark.parametrize("earlier", [True, False])
def test_c_code_sends_no_signal(play, earlier):
    """Not even from an earlier cell, in the process that starts the replays."""
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda *args: heard.append("signal"))
    try:
        kill = KILL.format(home=os.getpid())
        cells = ("import torch\n" + kill, FAILING) if earlier else (kill + FAILING,)
        played = play(*cells, checkpoint=not earlier)
        edits = [EDIT] if not earlier else [EDIT, ("import ctypes", "import  ctypes")]
        played.try_out(*edits)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs a system call filter")
def test_c_code_starts_no_process_and_no_datagram(play):
    code = """
import ctypes
libc = ctypes.PyDLL(None)
assert ctypes.CFUNCTYPE(ctypes.c_int)(("fork", libc))() < 0
"""
    assert refusal(play, code).reason.key == "needs_subprocess"
    code = """
import socket
try:
    socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    raise SystemExit
except OSError:
    pass
"""
    assert refusal(play, code).outcome is Outcome.VERIFIED


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_memory_is_limited_by_the_kernel(play):
    played = play("import torch", FAILING + "kept = bytearray(1 << 30)\n")
    rewrite = played.try_out(EDIT, megabytes=64)
    assert (rewrite.outcome, rewrite.reason.key) == (Outcome.NOT_TRIED, "memory")


def test_files_that_the_session_has_open_keep_their_position_and_content(play, tmp_path):
    source, log = tmp_path / "in.txt", tmp_path / "log.txt"
    source.write_text("1\n2\n3\n")
    played = play(
        f"reader = open({str(source)!r})\nlog = open({str(log)!r}, 'w', buffering=1)\n"
        "first = reader.readline()",
        FAILING.replace("y.mul_", "second = reader.read(); log.write('session ')\ny.mul_"),
    )
    played.namespace["reader"].seek(2)
    edit = ("y.mul_(2)", "y = y.mul(2); log.write('replay'); log.flush()")
    assert played.try_out(edit).outcome is Outcome.VERIFIED
    assert played.namespace["reader"].read() == "2\n3\n"
    played.namespace["log"].close()
    played.namespace["reader"].close()
    assert log.read_text() == "session "


def test_shared_memory_is_copied(play):
    """A rewrite that writes to a shared tensor does not reach the session's."""
    played = play(
        "import torch\nshared = torch.zeros(4).share_memory_()\n"
        "import mmap\nmapped = mmap.mmap(-1, 4096)",
        FAILING.replace("y.mul_(2)", "y.mul_(2); shared.fill_(9); mapped[:2] = b'xx'"),
    )
    played.namespace["shared"].zero_()
    played.namespace["mapped"][:2] = b"--"
    assert played.try_out(EDIT).outcome is Outcome.VERIFIED
    assert played.namespace["shared"].sum() == 0
    assert played.namespace["mapped"][:2] == b"--"


def test_sockets_of_the_session_are_out_of_reach(play):
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    played = play("import torch", FAILING)
    played.namespace["ours"] = ours
    played.checkpoint.discard()
    played = play(FAILING)
    played.namespace["ours"] = ours
    played.try_out(("y.mul_(2)", f"y = y.mul(2)\nimport os\nos.write({ours.fileno()}, b'x')"))
    with pytest.raises(BlockingIOError):
        theirs.recv(1)
    ours.close()
    theirs.close()


def test_output_is_swallowed(play, capfd):
    played = play(FAILING + "print('loud')\nimport os, sys\nos.write(1, b'raw')\n")
    assert played.try_out(EDIT).outcome is Outcome.VERIFIED
    out, err = capfd.readouterr()
    assert out == err == ""


def test_workers_of_a_loader_are_not_started(play):
    code = """
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.arange(8.0)), batch_size=2, num_workers=2,
                    persistent_workers=True)
seen = [float(b[0].sum()) for b in loader]
assert seen == [1.0, 5.0, 9.0, 13.0]
"""
    assert refusal(play, code).outcome is Outcome.VERIFIED


def test_more_threads_do_not_hang(play):
    code = "torch.set_num_threads(4)\nz = torch.randn(300, 300) @ torch.randn(300, 300)\n"
    assert refusal(play, code).outcome is Outcome.VERIFIED


def test_a_device_is_not_touched(play):
    code = "assert not torch.cuda.is_available()\n"
    assert refusal(play, code).outcome is Outcome.VERIFIED


ASKS = "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
STEPS = "torch.optim.Adam([torch.zeros(2, requires_grad=True)]).step()\n"


@pytest.mark.parametrize(("code", "tried"), [(ASKS, False), (STEPS, True)])
def test_a_program_that_asks_for_the_device_of_the_session_is_not_tried(
    play, monkeypatch, code, tried
):
    """torch itself asks at every step of an optimizer; that says nothing of the program."""
    monkeypatch.setattr(verifier, "uses_device", lambda: True)
    rewrite = refusal(play, code)
    assert (rewrite.outcome is not Outcome.NOT_TRIED) is tried
    assert (rewrite.reason.key != "cuda") is tried


def test_the_environment_stays(play):
    played = play("import torch", FAILING, checkpoint=False)
    played.try_out(
        ("y.mul_(2)", "y = y.mul(2)\nimport os\nos.environ['LEAK'] = '1'\nos.chdir('/')")
    )
    assert "LEAK" not in os.environ and os.getcwd() != "/"


@pytest.fixture
def process_group():
    import torch.distributed as dist

    if not dist.is_available():
        pytest.skip("built without torch.distributed")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize(
    "statement",
    [
        "torch.distributed.all_reduce(torch.ones(1))",
        "torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))",
        "torch.distributed.destroy_process_group()",
    ],
)
def test_a_process_group_is_not_waited_for(play, process_group, statement):
    """Its threads are not in the fork: joining them would take all the time there is."""
    outcome = refusal(play, statement)
    assert (outcome.outcome, outcome.reason.key) == (Outcome.NOT_TRIED, "needs_network")


def test_a_group_without_processes_may_be_made(play):
    fake = "from torch.testing._internal.distributed.fake_pg import FakeStore\n"
    start = "torch.distributed.init_process_group('fake', store=FakeStore(), rank=0, world_size=2)"
    use = "\ntorch.distributed.all_reduce(torch.ones(1))"
    assert refusal(play, f"{fake}{start}{use}").outcome is Outcome.VERIFIED
