"""A line is shown only where its text compiles to the code that ran."""

import ast
import linecache
import os
import sys
from pathlib import Path

import pytest
import torch

import autograd_explain
from autograd_explain.loaded import is_loaded, is_text_of
from autograd_explain.program import Program

MODULE = '''"""A gate."""
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    @staticmethod
    def shift(gate):
        return (lambda t: t + 1.0)(gate)

    # what is written here
    def forward(self, x):
        gate = torch.sigmoid(self.lin(x))
        gate += 1.0
        return gate.sum()


def unchanged(x):
    return [v * 2 for v in x]
'''
MOVED = MODULE.replace("import torch\n", "import torch\n\n# one\n# two\n", 1)
OTHER_NUMBER = MODULE.replace("gate += 1.0", "gate += 3.0")
USE = "net = gate_module.Gate()\nloss = net(torch.randn(2, 4))\nloss.backward()"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """An imported module of the user's; writing it anew is an edit after the import."""
    path = tmp_path / "gate_module.py"
    path.write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield path
    sys.modules.pop("gate_module", None)


def edit(path: Path, text: str) -> None:
    path.write_text(text)
    os.utime(path, (2e9, 2e9))
    linecache.checkcache(str(path))


def report() -> dict:
    found = autograd_explain.last()
    assert found is not None
    return found.to_dict()


def inside(events: list[dict]) -> list[dict]:
    return [e for e in events if e["place"]["file"] is not None]


@pytest.mark.parametrize("check", ["off", "on"])
def test_the_lines_of_a_module_that_is_as_it_was(run, module, check):
    run(f"import torch, gate_module\n%autograd_check {check}")
    run(USE)
    lines = [e["place"]["source"] for e in inside(report()["events"])]
    assert lines == ["gate = torch.sigmoid(self.lin(x))", "gate += 1.0"]
    assert report()["rewrites"]


@pytest.mark.parametrize("text", [MOVED, OTHER_NUMBER])
@pytest.mark.parametrize("check", ["off", "on"])
def test_no_line_and_no_edit_of_a_module_that_was_edited(run, module, check, text):
    run("import torch, gate_module")
    edit(module, text)
    run(f"%autograd_check {check}")
    run(USE)
    found = report()
    assert [e["place"]["source"] for e in inside(found["events"])] == [""] * (2 * (check == "on"))
    assert not found["rewrites"]
    if check == "on":
        shown = str(autograd_explain.last())
        assert "forward(): the file changed since it was loaded" in shown
        assert "gate_module.py:" not in shown


def test_a_function_that_autoreload_replaced(run, module):
    """IPython 9.18 numbers its lines from the function, 7.34 and 8 as the file does."""
    run("%load_ext autoreload\n%autoreload 2\nimport torch, gate_module")
    run("%autograd_check on")
    edit(module, OTHER_NUMBER)
    run(USE)
    first = sys.modules["gate_module"].Gate.forward.__code__.co_firstlineno
    as_in_file = OTHER_NUMBER.splitlines()[first - 1] == "    def forward(self, x):"
    lines = ["gate = torch.sigmoid(self.lin(x))", "gate += 3.0"] if as_in_file else ["", ""]
    assert [e["place"]["source"] for e in inside(report()["events"])] == lines
    assert bool(report()["rewrites"]) == as_in_file


def test_an_edit_while_the_text_that_ran_is_still_known_is_not_undone(run, module):
    run("import torch, gate_module\n%autograd_check on")
    linecache.getlines(str(module))
    module.write_text(OTHER_NUMBER)
    run(USE)
    found = report()
    assert [e["place"]["source"] for e in inside(found["events"])][-1:] == ["gate += 1.0"]
    assert not found["rewrites"]


def test_code_of_torch_compile_has_no_lines_of_its_own(run):
    """It carries the names of the user's function and the lines of its first one."""
    run("import torch\n%autograd_check on")
    run(MODULE)
    run("net = torch.compile(Gate(), backend='eager')")
    run("loss = net(torch.randn(2, 4))\nloss.backward()")
    events = report()["events"]
    told = {e["place"]["source"]: e["certainty"] for e in events if e["what"] != "failed"}
    assert told == {"gate = torch.sigmoid(self.lin(x))": "inferred", "gate += 1.0": "inferred"}
    torch._dynamo.reset()


def functions(text: str, name: str = "gate_module") -> dict:
    space: dict = {"__name__": name}
    exec(compile(text, "/home/user/gate_module.py", "exec", 0, True), space)
    return space


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"])
def test_a_text_is_known_by_the_code_it_compiles_to(future):
    space = functions(future + MODULE)
    codes = [space["Gate"].forward.__code__, space["Gate"].shift.__code__]
    codes += [space["unchanged"].__code__]
    assert all(is_text_of(future + MODULE, code) for code in codes)
    assert [is_text_of(future + OTHER_NUMBER, code) for code in codes] == [False, True, True]
    assert not any(is_text_of(future + MOVED, code) for code in codes)


def test_a_function_compiled_by_itself_is_not_at_its_place():
    tree = ast.parse(MODULE)
    forward = tree.body[-2].body[-1]
    space: dict = {}
    alone = ast.unparse(forward).replace("\n", "\n    ")
    exec(compile(f"class Gate:\n    {alone}", "gate_module.py", "exec"), space)
    assert not is_text_of(MODULE, space["Gate"].forward.__code__)


def test_functions_that_an_edit_left_alone_keep_their_lines(module):
    import gate_module

    edit(module, OTHER_NUMBER)
    program = Program()
    place = program.place_of(gate_module.unchanged.__code__, 23)
    assert (place.source, place.changed) == ("return [v * 2 for v in x]", False)
    place = program.place_of(gate_module.Gate.forward.__code__, 18)
    assert (place.source, place.function, place.changed) == ("", "forward", True)
    assert program.source(str(module)).text == ""
    assert not is_loaded(OTHER_NUMBER, str(module))
    assert is_loaded(MODULE, str(module))


def test_a_function_that_is_a_cell_is_part_of_its_text() -> None:
    """Where a front end (marimo) compiles the body of each function of a file by itself."""
    text = "import app\n\n@app.cell\ndef _(y):\n    z = y.exp()\n    z.sum()\n    return (z,)\n"
    (function,) = (s for s in ast.parse(text).body if isinstance(s, ast.FunctionDef))
    *body, last, _ = function.body
    assert isinstance(last, ast.Expr)
    parts = compile(ast.Module(body, []), "a.py", "exec"), ast.Expression(last.value)
    codes = parts[0], compile(parts[1], "a.py", "eval")
    assert all(is_text_of(text, code) for code in codes)
    moved, other = text.replace("\n\n", "\n\n\n"), text.replace("exp", "log").replace("sum", "max")
    assert not any(is_text_of(changed, code) for code in codes for changed in (moved, other))
