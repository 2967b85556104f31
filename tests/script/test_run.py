"""`python -m autograd_explain run`: the program as without us, and the report below."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import tomllib
import warm
from notebook import PATIENCE
from warm import Ended

CASES = Path(__file__).parents[1] / "field" / "cases"
RUN = ("-m", "autograd_explain", "run")
CHECK = ("--check", "--budget", PATIENCE)
FAILS = """
import torch
w = torch.ones(3, requires_grad=True)
y = w.exp()
y.mul_(2)
y.sum().backward()
"""


@pytest.fixture
def warm_python(tmp_path):
    """Run Python in an empty folder, torch loaded already."""
    return functools.partial(warm.run, folder=tmp_path)


@pytest.fixture
def python(tmp_path):
    """Start Python in an empty folder."""

    def run(*arguments: object) -> Ended:
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **warm.VARIABLES},
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return run


def write(folder: Path, text: str, name: str = "train.py") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text))
    return file


def norm(name: str) -> str:
    return name.replace(" ", "").replace('"', "'")


def lines_of(report: dict[str, Any], *kinds: str) -> list[int]:
    return [e["place"]["line"] for e in report["events"] if e["what"] in kinds]


@pytest.mark.timeout(300)
@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("case", "check"),
    [
        ("relu-before-residual-add", True),
        ("episode-reset-through-data", True),
        ("gan-disc-step-before-gen-backward", False),
        ("batch-canvas-slots-made-under-no-grad", False),
    ],
)
def test_a_notebook_as_a_script_is_explained_as_well(case, check, warm_python, tmp_path):
    truth = tomllib.loads((CASES / case / "truth.toml").read_text())
    text = (CASES / case / "case.py").read_text()
    script = write(tmp_path, text)
    starts = [n for n, line in enumerate(text.splitlines(), 1) if line.startswith("# %%")]
    wanted = {starts[cell - 1] + line for cell, line in truth["culprit"]["cause"]}
    plain = warm_python(script)
    ended = warm_python(*RUN, *(CHECK if check else ()), "--report", "report.json", script)
    assert (ended.status, ended.out) == (plain.status, plain.out)
    assert ended.err.startswith(plain.err)
    report = json.loads((tmp_path / "report.json").read_text())
    names = [n for t in report["tensors"] if t["role"] == "culprit" for n in t["names"]]
    assert {norm(n) for n in names} & {norm(n) for n in truth["culprit"]["names"]}
    assert lines_of(report, "changed", "cause")[0] in wanted
    outcomes = [rewrite["outcome"] for rewrite in report["rewrites"]]
    assert outcomes[0] == ("verified" if check else "not_tried")
    hints = ended.err[len(plain.err) :]
    assert "%autograd" not in hints and "%%autograd" not in hints


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("print('fine')", 0),
        ("import sys; print('out'); sys.exit(3)", 3),
        ("import sys; sys.exit('enough')", 1),
        ("import atexit; atexit.register(print, 'last'); 1 / 0", 1),
        ("import sys\nsys.excepthook = lambda *a: print('mine', a[0].__name__)\n1 / 0", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("def f(:", 1),
        ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e", 1),
        ("import sys; print(__name__, __file__ == sys.argv[0], sys.argv[1:], sys.path[0])", 0),
    ],
)
def test_the_program_ends_as_without_us(text, status, python, tmp_path):
    script = write(tmp_path, text)
    plain, ended = python(script, "--x", "1"), python(*RUN, script, "--x", "1")
    assert plain.status == status
    # With a relative path Python says it as it was given; run gives the whole one.
    assert ended == plain


def test_a_module_and_a_package_run(warm_python, tmp_path):
    body = textwrap.indent(FAILS, "    ")
    write(tmp_path, f"def main():\n{body}\nif __name__ == '__main__':\n    main()", "pack/train.py")
    write(tmp_path, "from .train import main\nmain()", "pack/__main__.py")
    write(tmp_path, "", "pack/__init__.py")
    for name in ("pack.train", "pack"):
        ended = warm_python(*RUN, "-m", name)
        assert ended.status == 1
        assert "6 │ ◆ y.mul_(2)" in ended.err and "train.py 5 │ ● y = w.exp()" in ended.err


TRAINS = """
import argparse, json, os
import torch

def train(model, folder, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = None
    for epoch in range(epochs):
        h = model(torch.randn(4, 3)).sigmoid()
        if epoch == 2:
            h *= 2
        loss = h.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if best is None or loss < best:
            best = loss.item()
            torch.save(model.state_dict(), f"{folder}/best.pt")
        with open(f"{folder}/log.jsonl", "a") as file:
            file.write(json.dumps({"epoch": epoch}) + chr(10))
    model.load_state_dict(torch.load(f"{folder}/best.pt"))
    assert len(open(f"{folder}/log.jsonl").readlines()) == epochs

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    os.makedirs("out")
    train(torch.nn.Linear(3, 2), "out", options.epochs)
"""


def test_a_program_of_several_files_that_writes_checkpoints_is_verified(warm_python, tmp_path):
    """Its gradients are known to functions of another file than the one that is run."""
    write(tmp_path, TRAINS, "loop.py")
    write(tmp_path, "import loop\nloop.main()")
    ended = warm_python(*RUN, *CHECK, "--report", "report.json", "train.py", "--epochs", "4")
    assert ended.status == 1
    rewrite = json.loads((tmp_path / "report.json").read_text())["rewrites"][0]
    assert rewrite["outcome"] == "verified", rewrite["outcome_reason"]
    assert "model.weight.grad" in ended.err
    assert len((tmp_path / "out/log.jsonl").read_text().splitlines()) == 2


CUTS = """
import torch

def main():
    enc, head = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
    opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.01)
    x = torch.randn(8, 3)
    for step in range(4):
        opt.zero_grad()
        h = enc(x).tanh()
        penalty = h.abs().mean().item()
        loss = head(h).pow(2).mean() + 0.1 * penalty
        loss.backward()
        opt.step()

main()
"""


def test_a_value_that_left_the_graph_is_told_as_in_a_notebook(warm_python, tmp_path):
    """Only another run of the program can tell; what started it is no part of it."""
    write(tmp_path, CUTS)
    command = [*RUN[2:], *CHECK, "train.py"]
    starts = f"from autograd_explain.cli import main\nmain({[*map(str, command)]})"
    ended = warm_python(write(tmp_path, starts, "start.py"))
    assert ended.status == 0
    assert "autograd_explain · silent_cut" in ended.err
    assert "the gradient of `enc.bias`" in " ".join(ended.err.split())
    assert "penalty = h.abs().mean()" in ended.err
    assert "called from train.py:16" in ended.err and "start.py" not in ended.err


def test_what_could_not_be_decided_in_time_is_said(warm_python, tmp_path):
    script = write(tmp_path, CUTS)
    ended = warm_python(*RUN, "--check", "--budget", "0.01", script)
    assert ended.status == 0 and "silent_cut" not in ended.err
    assert ended.err.startswith("autograd_explain: The code was not run once more")


def test_a_module_fails_as_without_us(python, tmp_path):
    """With the frames of Python's own `runpy`."""
    write(tmp_path, "import sys\nprint(__name__, __spec__.name, sys.argv)\n1 / 0", "pack/train.py")
    write(tmp_path, "from . import train\ndef f():\n    1 / 0\nf()", "pack/__main__.py")
    write(tmp_path, "", "pack/__init__.py")
    for name in ("pack.train", "pack"):
        plain, ended = python("-m", name, "a"), python(*RUN, "-m", name, "a")
        assert plain.status == 1 and "runpy" in plain.err
        assert ended == plain


def test_what_fails_in_us_is_told_without_a_magic(warm_python, tmp_path):
    cause = tmp_path / "causes" / "broken_one"
    cause.mkdir(parents=True)
    body = "PATTERNS = ('acme',)\nMESSAGES = {'acme': 'Acme cannot differentiate'}\nEXAMPLE = {}\n"
    (cause / "diagnose.py").write_text(f"{body}def diagnose(scene):\n    raise KeyError('acme')\n")
    for language in ("en", "ja", "zh"):
        (cause / f"{language}.md").write_text("---\ntitle: T\n---\n## summary\nS\n\n## cause\nC\n")
    script = write(tmp_path, "import torch\nraise RuntimeError('Acme cannot differentiate')")
    ended = warm_python(*RUN, "--causes", "causes", script)
    line = "autograd_explain: set aside an internal error (diagnose broken_one); KeyError: 'acme'\n"
    assert ended.err.endswith(line) and "%" not in ended.err


def test_other_programs_are_told_in_their_words(warm_python, tmp_path):
    script = write(tmp_path, FAILS)
    plain = warm_python(script)
    ended = warm_python(*RUN, "--output-format", "github", "--report", "found.txt", script)
    command = ended.err[len(plain.err) :]
    assert ended.err.startswith(plain.err) and command.count("\n") == 1
    assert command.startswith("::error title=autograd_explain%3A saved_value_overwritten,")
    assert "file=train.py,line=5" in command
    assert (tmp_path / "found.txt").read_text() == command
    ended = warm_python(*RUN, "--output-format", "json", script)
    assert json.loads(ended.err.splitlines()[-1])["id"] == "saved_value_overwritten"


def test_what_is_not_tried_says_how_it_would_be(warm_python, tmp_path):
    ended = warm_python(*RUN, "--check", "--no-verify", write(tmp_path, FAILS))
    assert "not tried: `--verify` would have it tried" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "a FILE is missing"),
        (("nowhere.py",), "can't open file"),
        (("-m", "no_such_module"), "no module named no_such_module"),
        (("--budget", "-1", "train.py"), "budget"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments, said, python, tmp_path):
    write(tmp_path, "print('ran')")
    ended = python(*RUN, *arguments)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err and "Traceback" not in ended.err


def test_what_a_thread_raises_is_explained(warm_python, tmp_path):
    body = textwrap.indent(FAILS, "    ")
    text = f"import threading\ndef work():\n{body}\nt = threading.Thread(target=work)\n"
    ended = warm_python(*RUN, write(tmp_path, text + "t.start()\nt.join()\nprint('on')"))
    assert (ended.status, ended.out) == (0, "on\n")
    assert "Exception in thread" in ended.err and "`y` was overwritten" in ended.err


def test_a_warning_is_told_at_the_end(warm_python, tmp_path):
    text = """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = w * 2
        h.sum().backward()
        print(h.grad)
    """
    ended = warm_python(*RUN, write(tmp_path, text))
    assert (ended.status, ended.out) == (0, "None\n")
    assert "autograd_explain · intermediate_grad" in ended.err


def test_an_entry_point_of_ones_own(python, tmp_path):
    text = """
        import sys
        import autograd_explain
        before = sys.excepthook
        autograd_explain.install()
        autograd_explain.install()
        autograd_explain.uninstall()
        assert sys.excepthook is before
        autograd_explain.install()
    """
    ended = python(write(tmp_path, textwrap.dedent(text) + FAILS))
    assert ended.status == 1
    assert ended.err.count("`y` was overwritten") == 1
    assert ended.err.index("RuntimeError") < ended.err.index("`y` was overwritten")


def test_explain_in_an_except_block(warm_python, tmp_path):
    text = f"""
import autograd_explain
def main():
{textwrap.indent(FAILS, "    ")}
try:
    main()
except RuntimeError as error:
    found = autograd_explain.explain(error)
    print(found.id, [event["place"]["line"] for event in found.to_dict()["events"]])
"""
    ended = warm_python(write(tmp_path, text))
    assert ended.status == 0, ended.err
    assert ended.out == "saved_value_overwritten [7, 8, 9]\n"
