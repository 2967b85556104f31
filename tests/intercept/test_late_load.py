"""`%load_ext` after the failure: what is there is explained, once, and nothing that has changed."""

import os
import re
import sys

import pexpect
import pytest

import autograd_explain

MADE = "import torch\nw = torch.ones(3, requires_grad=True)\nh = torch.sigmoid(w)"
FAILING = (MADE, "h += 1\nloss = h.sum()", "loss.backward()")
LOAD = "%load_ext autograd_explain"
BETWEEN = ("print(h.shape)", "def other(x):\n    return x", "w.grad")
OTHERS = ("1 / 0", "undefined", "import torch\ntorch.ones(2) @ torch.ones(3)")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
HEADLINE = "`h` was overwritten after the forward pass had saved it for backward."


@pytest.fixture
def run(plain_shell, monkeypatch):
    monkeypatch.setenv("AUTOGRAD_EXPLAIN_LANG", "en")

    def cells(*texts):
        for text in texts:
            plain_shell.run_cell(text, store_history=True)

    return cells


@pytest.mark.parametrize("between", [(), BETWEEN])
def test_one_and_several_cells_back(run, between):
    run(*FAILING, *between, LOAD)
    found = autograd_explain.last()
    assert found is not None and found.headline == HEADLINE
    assert [e["place"]["cell"] for e in found.to_dict()["events"]] == [1, 2, 3]


def test_explain_and_the_magic_give_it_too(run, capsys):
    run(*FAILING, LOAD, "import autograd_explain\nagain = autograd_explain.explain()")
    run("assert again.id == 'saved_value_overwritten'\nprint('same')")
    assert capsys.readouterr().out.endswith("same\n")
    run("%autograd_explain")
    assert HEADLINE in capsys.readouterr().out


def test_explain_sees_the_cells_without_loading(run, plain_shell, capsys):
    run(*FAILING, "import autograd_explain\nfound = autograd_explain.explain()\nfound")
    found = plain_shell.user_ns["found"]
    assert [e["place"]["cell"] for e in found.to_dict()["events"]] == [1, 2, 3]
    assert "`%load_ext autograd_explain` brings these commands" in capsys.readouterr().out
    assert "autograd_fix" not in plain_shell.magics_manager.magics["line"]


def test_its_cell_is_recorded_when_it_runs_again(run):
    cell = "\n".join(FAILING)
    run(cell, LOAD, cell)
    found = autograd_explain.last()
    assert {e["certainty"] for e in found.to_dict()["events"]} == {"observed"}


def test_names_bound_since_are_not_taken_for_those_that_failed(run, capsys):
    run(*FAILING, "loss = h.mean()", LOAD)
    assert autograd_explain.last() is None
    assert "run In[3] again" in capsys.readouterr().out


@pytest.mark.parametrize("cell", OTHERS)
def test_errors_of_others_are_left_alone(run, capsys, cell):
    run(cell)
    capsys.readouterr()
    run(LOAD)
    assert autograd_explain.last() is None
    assert capsys.readouterr().out == ""


def test_it_is_told_once(run, capsys):
    run(*FAILING, LOAD)
    assert HEADLINE in capsys.readouterr().out
    run("%reload_ext autograd_explain", "%unload_ext autograd_explain", LOAD)
    assert HEADLINE not in capsys.readouterr().out


def test_what_the_loading_cell_raises_is_its_own(run, capsys):
    run(*FAILING, f"{LOAD}\nw += 1")
    assert autograd_explain.last().id == "leaf_written"


def test_in_a_terminal(tmp_path):
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path), "AUTOGRAD_EXPLAIN_LANG": "en"}
    options = ["-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"]
    child = pexpect.spawn(
        sys.executable,
        options,
        env=environment,
        timeout=100,
        encoding="utf-8",
        dimensions=(60, 120),
    )
    try:
        for number, line in enumerate("\n".join((*FAILING, LOAD)).splitlines(), 1):
            child.expect_exact(f"In [{number}]: ")
            child.sendline(line)
        child.expect_exact("In [8]: ")
        shown = _COLOUR.sub("", child.before)
        assert HEADLINE in shown and "overwrote it: version 0 → 1" in shown
        child.sendline("exit")  # a busy machine takes longer to end it than `close` waits
        child.expect_exact(pexpect.EOF)
        child.wait()
    finally:
        child.close(force=True)
