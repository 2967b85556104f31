"""What a replay writes it reads back, and nothing of it is there afterwards."""

import os
import sys
from pathlib import Path

import pytest

from autograd_explain.model import Outcome
from autograd_explain.verification.broker import Broker, in_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs files in memory")
FAILING = """
import torch
w = torch.ones(3, requires_grad=True)
y = w.exp()
y.mul_(2)
y.sum().backward()
"""
EDIT = ("y.mul_(2)", "y = y.mul(2)")
#: Each row asserts what a program would see in a folder with old.txt, sub/a.txt and link -> sub.
PROGRAMS = {
    "text": """
with open("new.txt", "w") as f: f.write("one")
with open("new.txt", "a") as f: f.write(" two")
assert open("new.txt").read() == "one two" and Path("new.txt").stat().st_size == 7
with open("old.txt", "r+") as f: f.seek(1); f.write("E")
assert Path("old.txt").read_text() == "kEep" and os.path.getsize("old.txt") == 4
Path("sub/b.txt").write_text("b"); assert sorted(os.listdir("link")) == ["a.txt", "b.txt"]
with pytest_raises(FileExistsError): open("new.txt", "x")
with pytest_raises(FileNotFoundError): open("nowhere/x", "w")
with pytest_raises(IsADirectoryError): open("sub", "w")
""",
    "checkpoints": """
import csv, json, pickle
os.makedirs("out/epoch", exist_ok=True)
best = None
for epoch in range(3):
    torch.save({"w": w.detach() + epoch}, f"out/epoch/{epoch}.pt")
    json.dump({"epoch": epoch}, open("out/state.tmp", "w"))
    os.replace("out/state.tmp", "out/state.json")
    with open("out/log.csv", "a", newline="") as f: csv.writer(f).writerow([epoch])
assert torch.load("out/epoch/2.pt")["w"].tolist() == [3.0] * 3
assert json.load(open("out/state.json")) == {"epoch": 2} and not os.path.exists("out/state.tmp")
assert [r for r in csv.reader(open("out/log.csv"))] == [["0"], ["1"], ["2"]]
os.remove("out/epoch/0.pt"); os.symlink("epoch/2.pt", "out/last")
assert torch.load("out/last")["w"][0] == 3 and os.path.islink("out/last")
assert sorted(p.name for p in Path("out").rglob("*.pt")) == ["1.pt", "2.pt"]
""",
    "numpy": """
import numpy as np
np.save("a.npy", w.detach().numpy()); np.savez("b.npz", x=np.arange(3)); np.savetxt("c.txt", [1.0])
assert np.load("a.npy").tolist() == [1.0] * 3 and np.load("b.npz")["x"].sum() == 3
assert float(np.loadtxt("c.txt")) == 1 and np.load("a.npy", mmap_mode="r")[0] == 1
""",
    "folders": """
import shutil, tempfile
shutil.copy("old.txt", "copy"); shutil.copytree("sub", "twin"); shutil.move("copy", "twin/c")
assert sorted(os.listdir("twin")) == ["a.txt", "c"] and open("twin/c").read() == "keep"
shutil.rmtree("sub"); assert not os.path.exists("sub") and not os.path.exists("link/a.txt")
os.rename("twin", "moved"); assert open("moved/a.txt").read() == "a"
os.rename("moved/a.txt", "moved/b.txt"); assert sorted(os.listdir("moved")) == ["b.txt", "c"]
with pytest_raises(OSError): os.rmdir("moved")
with tempfile.TemporaryDirectory() as d: Path(d, "x").touch(); assert os.listdir(d) == ["x"]
assert not os.path.exists(d)
with tempfile.NamedTemporaryFile() as f: f.write(b"x"); f.flush(); assert os.path.exists(f.name)
assert not os.path.exists(f.name)
tempfile.TemporaryFile().write(b"x")
os.chdir("moved"); assert os.getcwd().endswith("/moved") and open("c").read() == "keep"
""",
    "names of its own": """
from os import makedirs, mkdir as make, scandir
from os.path import exists
make("d"); makedirs("d/e"); assert exists("d/e") and [e.is_dir() for e in scandir("d")] == [True]
fd = os.open("d/f", os.O_RDWR | os.O_CREAT); os.write(fd, b"abc"); os.close(fd)
os.truncate("d/f", 2); os.chmod("d/f", 0o600); os.utime("d/f"); assert open("d/f").read() == "ab"
os.link("d/f", "d/g"); os.unlink("d/f"); assert os.listdir("d") == ["e", "g"]
""",
}


def tree(folder: Path) -> dict[str, str | None]:
    paths = sorted(folder.rglob("*"))
    return {str(p): p.read_text() if p.is_file() else None for p in paths}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "old.txt").write_text("keep")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.txt").write_text("a")
    (tmp_path / "link").symlink_to("sub")
    monkeypatch.chdir(tmp_path)
    return tmp_path


HEAD = "import os\nfrom pathlib import Path\nfrom pytest import raises as pytest_raises\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_written_is_read_back_and_gone(name, play, folder):
    before = tree(folder)
    # Where the session does not get to: it would write to the real folder.
    played = play(HEAD + FAILING + PROGRAMS[name])
    rewrite = played.try_out(EDIT)
    assert rewrite.outcome is Outcome.VERIFIED, rewrite.reason
    assert tree(folder) == before


def test_what_the_session_has_made_since_is_not_there(play, folder):
    """Nor do replays see each other's."""
    makes = "import os, torch\nos.mkdir('out')\ntorch.save([1], 'out/a.pt')\n"
    once = "assert not os.path.exists('out/b')\nopen('out/b', 'w').close()\nos.remove('old.txt')\n"
    played = play(makes + FAILING + once)
    assert sorted(os.listdir(folder / "out")) == ["a.pt"]
    rewrite = played.try_out(EDIT)
    assert rewrite.outcome is Outcome.VERIFIED, rewrite.reason
    assert sorted(os.listdir(folder / "out")) == ["a.pt"] and (folder / "old.txt").exists()


def test_what_cannot_be_made_again_is_left_as_the_session_made_it(play, folder):
    """A download, say."""
    brings = "import os\nif not os.path.exists('data'): os.system('touch data')\n"
    rewrite = play(brings + FAILING + "open('data')\n").try_out(EDIT)
    assert rewrite.outcome is Outcome.VERIFIED, rewrite.reason


def test_files_of_earlier_cells_are_each_replays_own(play, folder):
    first = "import torch\nlog = open('log', 'w+')\nlog.write('a'); log.flush()"
    last = "log.write('b'); log.flush(); log.seek(0); assert log.read() == 'ab'\n"
    rewrite = play(first, last + FAILING, checkpoint=False).try_out(EDIT)
    assert rewrite.outcome is Outcome.VERIFIED, rewrite.reason
    assert (folder / "log").read_text() == "ab"


def test_what_is_too_large_is_not_tried(play, folder):
    big = "for _ in range(300):\n    open('big', 'ab').write(bytes(1 << 20))\n"
    rewrite = play(FAILING + big).try_out(EDIT, megabytes=256)
    assert (rewrite.outcome, rewrite.reason.key) == (Outcome.NOT_TRIED, "needs_file")


NATIVE = """
import ctypes, os
def serialize(tensors, metadata=None):
    return repr(tensors).encode()
def serialize_file(tensors, filename, metadata=None):
    if ctypes.CDLL(None).open(os.fsencode(filename), 0o101, 0o600) < 0:
        raise PermissionError(1, os.strerror(1), filename)
def safe_open(filename, framework):
    fd = ctypes.CDLL(None).open(os.fsencode(filename), 0)
    assert fd >= 0
    return os.read(fd, 100).decode()
"""
USES = """
import sys; sys.path.insert(0, os.getcwd())
from safetensors import safe_open, serialize_file
serialize_file([1], "x.safetensors")
assert safe_open("x.safetensors", framework="pt") == "[1]"
"""


def test_a_library_that_opens_paths_by_itself(play, folder):
    """The one that transformers writes its models with; a stand-in that does it in C as well."""
    (folder / "safetensors").mkdir()
    (folder / "safetensors/_safetensors_rust.py").write_text(NATIVE)
    (folder / "safetensors/__init__.py").write_text("from ._safetensors_rust import *")
    before = tree(folder)
    rewrite = play("import os\n" + FAILING + USES).try_out(EDIT)
    assert rewrite.outcome is Outcome.VERIFIED, rewrite.reason
    assert tree(folder) == before


def test_what_the_kernel_refuses_says_nothing_against_a_rewrite(play, folder):
    writes = NATIVE + "serialize_file([1], 'x')\n"
    rewrite = play(FAILING + writes).try_out(EDIT)
    assert (rewrite.outcome, rewrite.reason.key) == (Outcome.NOT_TRIED, "not_replayable")


def test_nothing_but_files_in_memory_is_opened(tmp_path):
    """Whatever descriptor is handed over."""
    broker = Broker()
    os.write(broker.opened(in_memory(), os.O_RDWR), b"x")
    for name in (tmp_path / "real", Path("/dev/shm") / tmp_path.name):
        name.touch()
        fd = os.open(name, os.O_RDONLY)
        with pytest.raises(PermissionError):
            broker.opened(fd, os.O_WRONLY)
        os.close(fd)
        name.unlink()
