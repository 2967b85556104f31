"""Of an error that is explained, each frame of a library takes one line of the traceback; nothing
else about it is other than without the extension."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from autograd_explain.program import is_library

#: Colours, and addresses of objects.
UNSTABLE = re.compile(r"\x1b\[[0-9;]*m|0x[0-9a-f]+")
SETUP = "import torch\nw = torch.ones(2, requires_grad=True)"
FAILING = "def total(t):\n    return t.sum().backward()\ny = w.exp()\ny.mul_(2)\ntotal(y)"
FOREIGN = "import json\njson.loads('{')"
REPORT = "── autograd_explain"

Run = Callable[[str], Any]


@pytest.fixture
def traceback(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """What is printed for a cell above its report."""
    shell.run_cell(SETUP)

    def printed(cell: str) -> str:
        capsys.readouterr()
        shell.execution_count = 10  # part of the cell's name
        shell.run_cell(cell, store_history=True)
        return UNSTABLE.sub("", capsys.readouterr().out).split(REPORT)[0]

    return printed


def frames(text: str) -> list[str]:
    """A traceback's parts: of one frame each, and what stands before and after."""
    start = r"(?=^(?:File |Cell |Input |~?/|<ipython-input|\w*(?:Error|Exception)\b))"
    return re.split(start, text, flags=re.M)


def of_library(frame: str) -> bool:
    named = re.match(r"(?:File )?(\S+?\.py)", frame)
    return named is not None and is_library(named[1])


def test_only_frames_of_libraries_are_folded(traceback: Callable[[str], str], run: Run) -> None:
    folded = frames(traceback(FAILING))
    run("%config AutogradExplain.traceback = 'full'")
    full = frames(traceback(FAILING))
    assert [f for f in folded if not of_library(f)] == [f for f in full if not of_library(f)]
    short, long = ([f for f in each if of_library(f)] for each in (folded, full))
    assert len(short) == len(long) > 1
    for line, frame in zip(short, long, strict=True):
        assert len(line.splitlines()) == 1 < len(frame.splitlines())
        assert line.split("(")[0] == frame.split("(")[0]


def test_tb_shows_everything(traceback: Callable[[str], str], run: Run) -> None:
    traceback(FAILING)
    again = traceback("%tb")
    run("%config AutogradExplain.traceback = 'full'")
    assert again == traceback(FAILING)


@pytest.mark.parametrize("cell", [FOREIGN, "1 +"], ids=["error", "syntax"])
def test_an_error_that_is_not_explained_is_shown_in_full(
    traceback: Callable[[str], str], run: Run, cell: str
) -> None:
    shown = traceback(cell)
    run("%unload_ext autograd_explain")
    assert shown == traceback(cell)


HANDLERS = {
    "set_custom_exc": "def mine(shell, *error, tb_offset=None): shell.showtraceback(error)\n"
    "get_ipython().set_custom_exc((RuntimeError,), mine)",
    "showtraceback": "shown = get_ipython().showtraceback\n"
    "get_ipython().showtraceback = lambda *a, **k: shown(*a, **k)",
    "class": "shown = type(get_ipython())._showtraceback\ndef mine(*a, **k): shown(*a, **k)\n"
    "type(get_ipython())._showtraceback = mine",
    "xmode": "%xmode Verbose",
}


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS)
def test_another_handler_is_left_alone(
    traceback: Callable[[str], str],
    run: Run,
    shell: InteractiveShell,
    monkeypatch: pytest.MonkeyPatch,
    handler: str,
) -> None:
    monkeypatch.setattr(InteractiveShell, "_showtraceback", InteractiveShell._showtraceback)
    run(handler)
    shown = traceback(FAILING)
    assert [f for f in frames(shown) if of_library(f) and len(f.splitlines()) > 1]
    run("%config AutogradExplain.traceback = 'full'")
    assert traceback(FAILING) == shown
    shell.set_custom_exc((), None)


def test_rich_is_left_alone(traceback: Callable[[str], str], run: Run) -> None:
    run("import rich.console, rich.traceback")
    run("_ = rich.traceback.install(console=rich.console.Console(), width=80)")
    shown = traceback(FAILING)
    assert "╭" in shown
    run("%config AutogradExplain.traceback = 'full'")
    assert traceback(FAILING) == shown


def test_nothing_is_left_after_unloading(shell: InteractiveShell, run: Run) -> None:
    assert "structured_traceback" in vars(shell.InteractiveTB)
    run("%unload_ext autograd_explain")
    assert not {"structured_traceback", "format_record"} & vars(shell.InteractiveTB).keys()


def test_who_wrapped_us_is_not_undone(
    traceback: Callable[[str], str], shell: InteractiveShell, run: Run
) -> None:
    ours = shell.InteractiveTB.structured_traceback
    theirs = shell.InteractiveTB.structured_traceback = lambda *a, **k: ours(*a, **k)
    run("%unload_ext autograd_explain")
    assert shell.InteractiveTB.structured_traceback is theirs
    assert [f for f in frames(traceback(FAILING)) if of_library(f) and len(f.splitlines()) > 1]
