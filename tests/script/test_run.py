"""`python -m autograd_explain run`: the program as without us, and the report below."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomllib

CASES = Path(__file__).parents[1] / "field" / "cases"
RUN = ("-m", "autograd_explain", "run")
FAILS = """
import torch
w = torch.ones(3, requires_grad=True)
y = w.exp()
y.mul_(2)
y.sum().backward()
"""


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


@pytest.fixture
def python(tmp_path):
    """Run Python in an empty folder."""

    def run(*arguments: object, stdin: str = "") -> Ended:
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1", "AUTOGRAD_EXPLAIN_LANG": "en"},
            timeout=200,
            input=stdin,
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
@pytest.mark.parametrize(
    ("case", "check"),
    [
        ("relu-before-residual-add", True),
        ("gan-disc-step-before-gen-backward", False),
        ("episode-reset-through-data", True),
        ("batch-canvas-slots-made-under-no-grad", False),
    ],
)
def test_a_notebook_as_a_script_is_explained_as_well(case, check, python, tmp_path):
    truth = tomllib.loads((CASES / case / "truth.toml").read_text())
    text = (CASES / case / "case.py").read_text()
    script = write(tmp_path, text)
    starts = [n for n, line in enumerate(text.splitlines(), 1) if line.startswith("# %%")]
    wanted = {starts[cell - 1] + line for cell, line in truth["culprit"]["cause"]}
    plain = python(script)
    ended = python(*RUN, *(["--check"] if check else []), "--report", "report.json", script)
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


def test_a_module_and_a_package_run(python, tmp_path):
    body = textwrap.indent(FAILS, "    ")
    write(tmp_path, f"def main():\n{body}\nif __name__ == '__main__':\n    main()", "pack/train.py")
    write(tmp_path, "from .train import main\nmain()", "pack/__main__.py")
    write(tmp_path, "", "pack/__init__.py")
    for name in ("pack.train", "pack"):
        ended = python(*RUN, "-m", name)
        assert ended.status == 1
        assert "6 │ y.mul_(2)" in ended.err and "saved train.py:5" in ended.err


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


def test_what_a_thread_raises_is_explained(python, tmp_path):
    body = textwrap.indent(FAILS, "    ")
    text = f"import threading\ndef work():\n{body}\nt = threading.Thread(target=work)\n"
    ended = python(*RUN, write(tmp_path, text + "t.start()\nt.join()\nprint('on')"))
    assert (ended.status, ended.out) == (0, "on\n")
    assert "Exception in thread" in ended.err and "`y` was overwritten" in ended.err


def test_a_warning_is_told_at_the_end(python, tmp_path):
    text = """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = w * 2
        h.sum().backward()
        print(h.grad)
    """
    ended = python(*RUN, write(tmp_path, text))
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


def test_explain_in_an_except_block(python, tmp_path):
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
    ended = python(write(tmp_path, text))
    assert ended.status == 0, ended.err
    assert ended.out == "saved_value_overwritten [7, 8, 9]\n"
