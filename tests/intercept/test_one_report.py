"""One failure gives one report, which says of each rewrite why it was not tried."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell

from autograd_explain.intercept import screen
from autograd_explain.model import Kind
from autograd_explain.render.explanation import Explanation

NON_LEAF = "import torch\nw = torch.ones(3, requires_grad=True) * 2\n(w * w).sum().backward()\n"
TWO = NON_LEAF + "v = torch.ones(3, requires_grad=True) * 3\n"
ANOMALY = (
    "import torch\nw = torch.ones(3, requires_grad=True)\n"
    "with torch.autograd.detect_anomaly():\n"
    "    h = torch.sigmoid(w)\n    y = h * h\n    h += 1\n    y.sum().backward()\n"
)


@pytest.fixture
def shown(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> list[Explanation]:
    """What the shell shows, in order."""
    found: list[Explanation] = []
    monkeypatch.setattr(screen, "show", lambda shell, explanation: found.append(explanation))
    return found


@pytest.mark.parametrize("failing", ["w.grad.zero_()", "w -= 0.1 * w.grad", "w.grad[0]"])
@pytest.mark.parametrize("mode", ["off", "on"])
def test_a_warning_and_the_error_it_leads_to(run, shown, failing, mode):
    run(f"%autograd_check {mode}")
    run(NON_LEAF + failing)
    assert len(shown) == 1
    assert shown[0].id == "cast_made_non_leaf"


def test_anomaly_mode_reports_before_the_error(run, shown):
    run(ANOMALY)
    assert [(e.id, e.diagnosis.kind) for e in shown if e.id != "anomaly_report"] == [
        ("saved_value_overwritten", Kind.ERROR)
    ]
    lines = [next(e for e in x.diagnosis.finding.events if e.what.value == "failed") for x in shown]
    assert len({event.place for event in lines}) == len(shown)


def test_a_warning_about_something_else_is_told_as_well(run, shown):
    run(f"{TWO}print(v.grad)\nw.grad.zero_()")
    assert [e.diagnosis.kind for e in shown] == [Kind.WARNING, Kind.ERROR]
    names = [e.diagnosis.finding.tensors[0].names[0] for e in shown]
    assert names == ["v", "w"]


def reasons(explanation: Explanation) -> set[str]:
    return {rewrite.reason.key for rewrite in explanation.diagnosis.rewrites}


def test_a_check_is_not_offered_while_one_is_on(run, shown):
    run("%autograd_check on")
    run(f"{TWO}print(v.grad)\nw.grad.zero_()")
    assert len(shown) == 2 and all(reasons(e) for e in shown)
    assert not any("not_checked" in reasons(e) for e in shown)
    run("%config AutogradExplain.verify = False")
    run(NON_LEAF + "w.grad.zero_()")
    assert reasons(shown[-1]) == {"verify_off"}


def test_an_error_that_the_cell_catches(run, shown, shell):
    run("%autograd_check on")
    run(
        "import autograd_explain\n" + NON_LEAF + "try:\n    w.grad.zero_()\n"
        "except AttributeError as e:\n    found = autograd_explain.explain(e)"
    )
    assert reasons(shell.user_ns["found"]) == {"caught"}


def test_a_warning_and_what_comes_of_it(run, shown):
    """torch warns of the copy; the loss depends on it, and its gradient does not."""
    run("%config AutogradExplain.verify = True")
    run("import torch\nw = torch.ones(3, requires_grad=True)")
    run("%autograd_check on")
    run("loss = w.exp().sum() + torch.tensor(w.pow(2).sum())\nloss.backward()\n")
    assert [(e.id, e.diagnosis.kind) for e in shown] == [("silent_cut", Kind.SILENT)]
    assert shown[0].diagnosis.message.startswith("To copy construct from a tensor")


@pytest.mark.parametrize(
    "handler",
    [
        "shown = get_ipython().showtraceback\n"
        "get_ipython().showtraceback = lambda *a, **k: shown(*a, **k)",
        "def mine(shell, *error, tb_offset=None): shell.showtraceback(error)\n"
        "get_ipython().set_custom_exc((RuntimeError,), mine)",
    ],
)
def test_a_handler_that_was_put_around_ours(run, shell, shown, handler):
    run(handler)
    run("import torch\nh = torch.ones(2, requires_grad=True).exp()\nh += 1\nh.sum().backward()")
    shell.set_custom_exc((), None)
    assert [e.id for e in shown] == ["saved_value_overwritten"]
