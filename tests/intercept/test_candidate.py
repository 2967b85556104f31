"""Somebody's own text in the place of a cell or a file: the verdict on it."""

from __future__ import annotations

import pytest
import torch
from IPython.core.error import UsageError

import autograd_explain
from autograd_explain.intercept.candidate import NoPlace, try_in_session, try_script
from autograd_explain.render.verdict import verdict_of

FIRST = "import torch\nw = torch.ones(3, requires_grad=True)"
FAILS = "y = w.exp()\ny.mul_(2)\ny.sum().backward()"
GOOD = "y = w.exp()\ny = y.mul(2)\ny.sum().backward()"
CANDIDATES = {
    GOOD: "verified",
    "y = w.exp()\ny = y * 2\nloss = y.sum()\nloss.backward()": "verified",
    "y = w.exp()\ny.data.mul_(2)\ny.sum().backward()": "differs",
    "y = w.exp()\ny = y.mul(3)\ny.sum().backward()": "differs",
    "y = w.exp()\ny = y.mul(2)": "differs",
    "y = w.exp()\ny = y.detach().mul(2)\ny.sum().backward()": "fails",
    "y = w.exp(": "fails",
    "raise SystemExit": "fails",
    FAILS: "fails",
    "open('left.txt', 'w').write('x')\n(w.exp() * 2).sum().backward()": "verified",
}
SCRIPT = """
import sys
import torch
from beside import double

def main():
    torch.manual_seed(0)
    net = torch.nn.Linear(int(sys.argv[1]), 2)
    y = net(torch.ones(2, net.in_features)).sigmoid()
    y.mul_(2)
    double(y).sum().backward()
    assert net.in_features == 3 and __file__.endswith("train.py")

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def verdict(session):
    def judge(candidate, cell=None, file=None):
        return verdict_of(try_in_session(session, candidate, cell, file, 60.0), "en")

    return judge


@pytest.fixture
def failed(run):
    run(FIRST)
    run(FAILS)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("candidate", CANDIDATES, ids=range(len(CANDIDATES)))
def test_a_candidate_for_the_cell_that_failed(failed, verdict, tmp_path, monkeypatch, candidate):
    monkeypatch.chdir(tmp_path)
    found = verdict(candidate)
    assert found.outcome == CANDIDATES[candidate], found
    assert found.reason
    assert not list(tmp_path.iterdir())


def test_what_was_compared_is_named(failed, verdict):
    assert verdict(GOOD).compared == ("w.grad",)
    assert str(verdict(GOOD)) == "verified: the gradients equal the reference (w.grad)"
    assert "w.grad" in verdict(GOOD.replace("2", "3")).differing
    assert verdict(GOOD).to_dict() == {
        "outcome": "verified",
        "reason": "the gradients equal the reference (w.grad)",
        "compared": ["w.grad"],
        "differing": [],
    }


def test_a_cell_that_did_not_fail_is_compared_with_itself(run, verdict):
    """Its gradients may be wrong as well: nothing is verified."""
    run(FIRST)
    run("z = (w * 3).sum()\nz.backward()")
    same = verdict("z = (3 * w).sum()\nz.backward()", cell=2)
    assert (same.outcome, same.compared) == ("runs", ("w.grad",))
    assert "those of the program as it is (w.grad)" in same.reason
    other = verdict("z = (4 * w).sum()\nz.backward()", cell=2)
    assert other.outcome == "differs"
    assert "those of the program as it is (w.grad, z, loss)" in other.reason


def test_a_fault_that_copies_of_what_was_saved_do_not_mend(run, verdict):
    """The list holds one buffer three times: what the graph saved was not written."""
    run(FIRST)
    run("%autograd_check on")
    cell = (
        "buffer, outs = torch.zeros(3), []\nfor t in range(3):\n    buffer[:] = w * t\n"
        "    outs.append(buffer)\ntorch.stack(outs).sum().backward()"
    )
    run(cell)
    assert autograd_explain.last().id == "silent_overwrite"
    assert verdict(cell + "\nprint('done')").outcome == "runs"
    assert verdict(cell.replace("append(buffer)", "append(buffer.clone())")).outcome != "verified"


def test_an_earlier_cell_may_mend_the_one_that_failed(run, verdict):
    run(FIRST)
    run("def f(w):\n    y = w.exp()\n    y.mul_(2)\n    return y.sum()")
    run("f(w).backward()")
    assert verdict("def f(w):\n    return (w.exp() * 2).sum()", cell=2).outcome == "verified"
    assert verdict("def f(w):\n    return (w.exp() * 3).sum()", cell=2).outcome == "differs"


def test_one_of_the_users_files(run, verdict, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "candidate_layers.py"
    text = "def f(w):\n    y = w.exp()\n    y.mul_(2)\n    return y.sum()\n"
    file.write_text(text, "utf-8")
    run(FIRST)
    run("import candidate_layers\ncandidate_layers.f(w).backward()")
    better = text.replace("y.mul_(2)", "y = y.mul(2)")
    assert verdict(better, file=str(file)).outcome == "verified"
    assert file.read_text("utf-8") == text


def test_nothing_of_the_session_changes(failed, verdict, shell):
    w = shell.user_ns["w"]
    w.grad = torch.full((3,), 7.0)
    state, names = torch.get_rng_state(), set(shell.user_ns)
    assert verdict("torch.rand(3)\nnew = 1\n(w.exp() * 2).sum().backward()").outcome == "verified"
    assert w.grad.tolist() == [7.0, 7.0, 7.0]
    assert torch.equal(state, torch.get_rng_state())
    assert set(shell.user_ns) == names


def test_a_place_that_is_not_there(run, verdict, tmp_path):
    with pytest.raises(NoPlace, match="cell="):
        verdict("x = 1")
    with pytest.raises(NoPlace, match=r"In\[9\]"):
        verdict("x = 1", cell=9)
    with pytest.raises(NoPlace, match="own files"):
        verdict("x = 1", file=str(tmp_path / "none.py"))
    with pytest.raises(NoPlace, match="cannot be read"):
        try_script(str(tmp_path / "none.py"), "x = 1", 5.0)


def test_the_magic_tries_its_cell(failed, run, capsys):
    run("%%autograd_verify\n" + GOOD)
    assert "verified: the gradients equal the reference (w.grad)" in capsys.readouterr().out
    run("%%autograd_verify --cell 1\n" + FIRST)
    assert "fails: it stops with `RuntimeError" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", ["--cell 77", "--cell x", "--budget 0", "--file none.py", "--what"]
)
def test_bad_arguments_are_told(failed, shell, arguments):
    with pytest.raises(UsageError):
        shell.run_cell_magic("autograd_verify", arguments, "x = 1")


def test_a_script_with_arguments_and_files_beside_it(tmp_path):
    file = tmp_path / "train.py"
    file.write_text(SCRIPT, "utf-8")
    (tmp_path / "beside.py").write_text("def double(x):\n    return 2 * x\n", "utf-8")
    for new, outcome in (("y = y.mul(2)", "verified"), ("y.data.mul_(2)", "differs")):
        found = try_script(str(file), SCRIPT.replace("y.mul_(2)", new), 60.0, "3")
        assert verdict_of(found, "en").outcome == outcome
        if outcome == "verified":
            assert verdict_of(found, "en").compared == ("net.bias.grad", "net.weight.grad")
    assert file.read_text("utf-8") == SCRIPT


def test_verify_is_public_and_stays_so(failed):
    found = autograd_explain.verify(GOOD)
    assert (found.outcome, found.compared) == ("verified", ("w.grad",))
    assert autograd_explain.verify(FAILS, cell=2, budget=60).outcome == "fails"
    for budget in (0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="budget"):
            autograd_explain.verify(GOOD, budget=budget)


def test_verify_of_a_script_without_a_notebook(tmp_path):
    assert autograd_explain._session is None
    file = tmp_path / "train.py"
    file.write_text(f"{FIRST}\n{FAILS}\n", "utf-8")
    assert autograd_explain.verify(f"{FIRST}\n{GOOD}\n", file=str(file)).outcome == "verified"
    with pytest.raises(ValueError, match="file="):
        autograd_explain.verify(GOOD)
