"""The program as it ran: numbers, file names, lines as typed."""

import sys
import types

import pytest

import autograd_explain
from autograd_explain.incident import frames_of
from autograd_explain.intercept.cells import peel

LEAF = "import torch; w = torch.ones(2, requires_grad=True)"


def error_place(session):
    """Where the last shown exception surfaced, by file name, line and the cells that ran."""
    frames = frames_of(sys.last_value.__traceback__)
    program, frames = session.cells.settled(frames)
    places = [program.place(f.filename, f.line, f.function) for f in frames]
    return [(p.cell, p.line, p.source) for p in places if p is not None][-1]


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("1/0", 1),
        ("x = 1\n1/0", 2),
        ("\n\n  \nx = 1\n1/0\n\n", 5),
        ("    x = 1\n    1/0", 2),
        ("%%time\nx = 1\n1/0", 3),
        ("%%time\n\n\n1/0", 4),
        ("%%capture out\nx = 1\n1/0", 3),
        ("%%capture out\n\n%%time\n\n1/0", 5),
        ("%%time\n%%capture out\n1/0", 3),
        ("%%prun -q\nx = 1\n1/0", 3),
        ("%%timeit -n1 -r1\nx = 1\n1/0", 3),
        ("%%autograd_check\nx = 1\n1/0", 3),
        ("%%autograd_check --no-verify\n\n%%time\n1/0", 4),
        ("%%time\n%%autograd_check\n1/0", 3),
        ("%%capture out\n%%autograd_check\n\n1/0", 4),
        ("%matplotlib --list\n!true\n1/0", 3),
        ("import asyncio\nawait asyncio.sleep(0)\n1/0", 3),
    ],
)
def test_a_failing_line_is_counted_in_the_cell_as_typed(run, session, cell, line):
    run("first = 1")
    run(cell)
    assert error_place(session) == (2, line, "1/0")


def test_a_function_keeps_its_own_cell(run, session):
    run("def f():\n    1/0")
    run("def g():\n    f()")
    run("g()")
    assert error_place(session) == (1, 2, "1/0")


def test_functions_of_two_timed_cells_are_told_apart(run, session):
    run("%%time\ndef f():\n    return 1\n")
    run("%%time\ndef g():\n    1/0\n")
    run("%%time\nx = 1\ng()")
    program, frames = session.cells.settled(frames_of(sys.last_value.__traceback__))
    places = [program.place(f.filename, f.line) for f in frames if "timed" in f.filename]
    assert [(p.cell, p.line, p.source) for p in places] == [(3, 3, "g()"), (2, 3, "1/0")]


def test_a_function_of_an_earlier_timed_cell(run, session):
    run("%%time\ndef f():\n    1/0\n")
    run("%%time\ny = 2\n")
    run("f()")
    assert error_place(session) == (1, 3, "1/0")


def test_another_magics_body_is_known_by_its_code(run, session, shell):
    shell.register_magic_function(
        lambda line, cell: exec(compile(cell, "<mine>", "exec"), shell.user_ns),
        magic_kind="cell",
        magic_name="mine",
    )
    run("%%mine\nx = 1\n1/0")
    assert error_place(session) == (1, 3, "1/0")


def test_generated_code_is_nobodys_line(run, session):
    run("%%prun -q\nx = 1")
    run("exec('x = 2\\n1/0')")
    assert error_place(session) == (2, 1, "exec('x = 2\\n1/0')")


def test_equal_cells_run_twice(run, session):
    run("x = 1")
    run("1/0")
    run("1/0")
    assert error_place(session) == (3, 1, "1/0")


def test_cells_that_ran_before_loading(plain_shell):
    plain_shell.run_cell("\ndef f():\n    1/0", store_history=True)
    plain_shell.run_cell("%%time\nx = 1", store_history=True)
    plain_shell.run_cell("%load_ext autograd_explain", store_history=True)
    plain_shell.run_cell("f()", store_history=True)
    session = autograd_explain._session
    assert error_place(session) == (1, 3, "1/0")
    assert [c.cell for c in session.cells.program().cells] == [1, 3, 4]


def test_a_run_outside_the_history_shares_its_number(run, shell, session):
    run("x = 1")
    shell.run_cell("x = 2", store_history=False)
    run("x = 3")
    found = [(c.cell, c.text, c.history) for c in session.cells.program().cells[-3:]]
    assert found == [(1, "x = 1", True), (2, "x = 2", False), (2, "x = 3", True)]


def test_the_running_cell_is_part_of_the_program(run, session, shell):
    seen = []
    shell.user_ns["look"] = lambda: seen.append(session.cells.program().cells[-1])
    run("x = 1")
    run("%%autograd_check\nlook()")
    assert (seen[0].cell, seen[0].text) == (2, "%%autograd_check\nlook()")
    assert seen[0].place(2).source == "look()"


def test_python_is_what_was_compiled(run, session):
    run("%pwd\nx = 1")
    run("!true")
    for source in session.cells.program().cells:
        assert source.tree.body
        assert "get_ipython()" in source.python


def test_only_text_of_the_last_cells_is_kept(run, session, monkeypatch):
    monkeypatch.setattr("autograd_explain.intercept.cells.MAX_CELLS", 3)
    for n in range(6):
        run(f"x = {n}")
    assert [c.cell for c in session.cells.program().cells] == [4, 5, 6]


def test_blank_cells_and_cells_without_history(run, session, shell):
    run("   ")
    run("x = 1")
    shell.run_cell("1/0")
    assert error_place(session) == (2, 1, "1/0")
    assert session.cells.running is None


def test_syntax_errors_leave_nothing_running(run, session):
    run("x = (")
    run("%%time\nx = (")
    assert session.cells.running is None
    run("1/0")
    assert error_place(session) == (3, 1, "1/0")


def test_a_cancelled_cell_has_no_result(run, session, shell):
    session.cells.start(types.SimpleNamespace(raw_cell="await x", store_history=True))
    session._after(None)
    assert session.cells.running is None


def test_peel():
    assert peel("%%time\n\n%%capture out\nx") == peel("%%time\n\n%%capture out\ny")
    assert peel("%%time\n\n%%capture out\nx").magics == ("time", "capture")
    assert peel("%%time\n\n%%capture out\nx").skipped == 3
    assert peel("x = 1\n%%time").magics == ()
    assert peel("%%time?").magics == ()
