"""What the index says of programs whose text alone would mislead."""

from __future__ import annotations

import ast
import sys
import textwrap
from pathlib import Path

import pytest
from notebook import Notebook

from autograd_explain.model import Edit
from autograd_explain.program import Program, Source
from autograd_explain.program_index import ProgramIndex, index_of
from autograd_explain.rewrite.engine.edits import apply


def index_after(*cells: str) -> ProgramIndex:
    notebook = Notebook()
    for cell in cells:
        notebook.run(textwrap.dedent(cell))
    return index_of(notebook.program)


OLD = """
class Bank:
    def keep(self, row):
        return store(row)
"""
NEW = """
class Bank:
    def keep(self, row):
        return store(row, 1)
"""
STORE = "def store(row, times=0):\n    return row\n"


def test_a_class_defined_again_is_read_once() -> None:
    index = index_after(STORE, OLD, NEW, "bank = Bank()")
    assert [source.cell for source, _ in index.calls("store")] == [3]
    assert [source.cell for source, _ in index.classes("Bank")] == [3]


def test_the_older_class_counts_while_an_object_of_it_lives() -> None:
    index = index_after(STORE, OLD, "bank = Bank()", NEW)
    assert [source.cell for source, _ in index.calls("store")] == [4, 2]


def test_the_older_class_counts_as_the_base_of_the_newer() -> None:
    index = index_after(STORE, OLD, "class Bank(Bank):\n    def drop(self): pass", "b = Bank()")
    assert [source.cell for source, _ in index.calls("store")] == [2]


def test_an_older_function_counts_while_it_is_a_hook() -> None:
    hook = "def hook(grad):\n    return grad * {}\n"
    register = "import torch\nx = torch.ones(2, requires_grad=True)\nhandle = x.register_hook(hook)"
    index = index_after(hook.format(2), register, hook.format(3))
    assert [d.source.cell for d in index.functions("hook")] == [1, 3]
    assert index.function("hook").source.cell == 3
    index = index_after(hook.format(2), hook.format(3), register)
    assert [d.source.cell for d in index.functions("hook")] == [2]


def test_a_function_whose_name_became_a_value_still_counts() -> None:
    index = index_after("def loss(x):\n    return x\n", "loss = loss(2)")
    assert index.function("loss").source.cell == 1


def test_a_function_is_not_taken_for_a_method_of_its_name() -> None:
    index = index_after("class Bank:\n    def keep(self): pass\n", "def keep(): pass\n")
    assert index.function("keep") is None


def test_what_a_library_holds_is_no_function_of_the_users() -> None:
    index = index_after(
        "import torch",
        "def stack(rows):\n    return (rows,)",
        "a = torch.stack([torch.ones(2)])\nb = stack([a])",
    )
    ((source, call),) = index.calls_of("stack")
    assert (source.cell, call.lineno) == (3, 2)
    of_torch = next(call for _, call in index.calls("stack") if call.lineno == 1)
    assert index.called(source, of_torch) is None
    assert index.called(source, call).source.cell == 2


def test_a_cell_that_ran_twice_is_read_once() -> None:
    index = index_after("x = 1", "y = abs(x)", "x = 2", "y = abs(x)")
    assert [source.cell for source, _ in index.calls("abs")] == [4]
    assert [source.cell for source, _ in index.assignments("y")] == [2, 4]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


def test_files_are_read_through_their_imports(folder: Path) -> None:
    (folder / "outer_part.py").write_text("from inner_part import deep\n\ndef f():\n    deep()\n")
    (folder / "inner_part.py").write_text("def deep():\n    return max(1, 2)\n")
    index = index_after("import outer_part")
    assert [Path(s.file or "").name for s, _ in index.calls("max")] == ["inner_part.py"]
    assert [Path(s.file or "").name for s in index.files] == ["outer_part.py", "inner_part.py"]


def test_a_script_is_no_file_besides(folder: Path) -> None:
    """Its code is met in the frames of the failure, as that of files is."""
    file = folder / "train.py"
    text = "def f(x):\n    return x\nf(1)\n"
    file.write_text(text)
    names: dict[str, object] = {}
    code = compile(text, str(file), "exec")
    exec(code, names)
    script = Source(None, str(file), text, text, str(file))
    index = index_of(Program([script], names).at([code]))
    assert index.files == () and len(list(index.calls("f"))) == 1
    assert index.function("f") is not None


def test_a_file_replaces_the_cell_that_it_was_copied_from(folder: Path) -> None:
    (folder / "banks_part.py").write_text(STORE + OLD)
    index = index_after(STORE, OLD, "from banks_part import Bank, store")
    assert [s.cell for s, _ in index.calls("store")] == [None]
    assert [s.cell for s, _ in index.nodes(ast.ClassDef)] == [None]


def test_what_lives_is_the_same_in_an_edited_program() -> None:
    notebook = Notebook()
    for cell in (STORE, OLD, NEW, "bank = Bank()"):
        notebook.run(cell)
    program: Program = notebook.program
    old = program.cells[1].text
    edited = apply(program, [Edit(2, None, old, "# kept\n# for later\n" + old)])
    assert edited is not None
    assert [source.cell for source, _ in index_of(edited.program).calls("store")] == [3]


def test_a_definition_is_the_one_that_the_name_stands_for(folder: Path) -> None:
    (folder / "layers_part.py").write_text(OLD)
    cells = (STORE, OLD, "from layers_part import Bank", "class Own(Bank): pass\nown = Own()")
    notebook = Notebook()
    for cell in cells:
        notebook.run(cell)
    index = index_of(notebook.program)
    found = [(s.cell, s.file) for s, _ in index.defined("Bank", notebook.cells[3])]
    assert found == [(None, str(folder / "layers_part.py"))]


def test_what_lives_is_found_without_running_any_of_its_code() -> None:
    hostile = """
    class Meta(type):
        def __hash__(cls): raise SystemExit("hashed")
        def __eq__(cls, other): raise SystemExit("compared")
        def __getattribute__(cls, name): raise SystemExit("asked")

    class Trap(metaclass=Meta):
        def __getattribute__(self, name): raise SystemExit("asked")
        def __eq__(self, other): raise SystemExit("compared")

    trap = Trap()
    """
    index = index_after(hostile, STORE, OLD, NEW, "bank = Bank()")
    assert [source.cell for source, _ in index.calls("store")] == [4]


def test_a_function_that_says_it_wraps_itself_has_no_definition() -> None:
    notebook = Notebook()
    notebook.run("def step(x):\n    return x\nstep.__wrapped__ = step")
    assert index_of(notebook.program).definition(notebook.namespace["step"]) is None


CLASHES = {
    "numpy's function": ("import numpy as np", "np.load('x')", "numpy"),
    "torch's function": ("import torch", "torch.load('x')", "torch"),
    "torch's, imported": ("from torch import load", "load('x')", "torch"),
    "torch's, under another name": ("import torch.utils.checkpoint as c", "c.load('x')", "torch"),
    "torch's, imported where it is called": (
        "pass",
        "def f():\n    from torch import load\n    return load('x')",
        "torch",
    ),
    "the user's": ("def load(path): pass", "load('x')", ""),
    "the user's, in place of torch's": (
        "from torch import load\ndef load(path): pass",
        "load('x')",
        "",
    ),
    "torch's, in place of the user's": (
        "def load(path): pass\nfrom torch import load",
        "load('x')",
        "torch",
    ),
    "the user's class": ("class load: pass", "load('x')", ""),
    "a method of the user's alone": (
        "class Store:\n    def load(self, path): pass\nstore = Store()",
        "store.load('x')",
        "",
    ),
    "a method of the user's in its class": (
        "pass",
        "class Store:\n    def load(self, path): pass\n    def read(self): self.load('x')",
        "",
    ),
    "a method that overrides torch's": (
        "import torch\nclass Net(torch.nn.Module):\n    def apply(self, f): pass\nnet = Net()",
        "net.apply(print)",
        None,
    ),
    "a method of an object that is not known": ("pass", "def f(x):\n    return x.load()", None),
    "a function inside a function": (
        "from torch import load",
        "def f():\n    def load(x): pass\n    return load('x')",
        "",
    ),
    "a parameter": ("from torch import load", "def f(load):\n    return load('x')", None),
    "a name that is a value now": ("def load(path): pass\nload = 3", "load('x')", None),
}  # fmt: skip


@pytest.mark.parametrize("clash", CLASHES, ids=str)
def test_a_call_is_told_by_what_its_name_stands_for(clash: str) -> None:
    before, text, package = CLASHES[clash]
    index = index_after(before, "if moved := False:\n" + textwrap.indent(text, "    "))
    ((source, call),) = index.calls("load", "apply")
    assert index.package(source, call) == package
    known = [c for _, c in index.calls("load", "apply", of="torch")]
    assert known == ([call] if package in ("torch", None) else [])
