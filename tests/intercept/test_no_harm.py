"""The session with the extension loaded is as it is without."""

from __future__ import annotations

import random
from typing import Any

import numpy
import pytest
import torch

FAILING = (
    "import torch\nx = torch.ones(2, requires_grad=True)\ny = x.exp()\ny.mul_(2)\n"
    "y.sum().backward()"
)


def generators() -> tuple[Any, ...]:
    numpys = numpy.random.get_state()
    state = torch.default_generator.get_state().tolist()
    return random.getstate(), numpys[1].tolist(), numpys[2:], state


@pytest.mark.parametrize("watched", [False, True], ids=["hooks", "check"])
def test_the_next_random_number_is_the_same(
    run: Any, session: Any, watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    explain = session.explainer.explain

    def drawing(*args: Any, **options: Any) -> Any:
        """As an import may."""
        random.random()
        numpy.random.rand()
        torch.rand(1)
        return explain(*args, **options)

    monkeypatch.setattr(session.explainer, "explain", drawing)
    if watched:
        run("%autograd_check --no-verify on")
    before = generators()
    run(FAILING)
    run("try:\n    y.sum().backward()\nexcept RuntimeError:\n    import autograd_explain\n"
        "    found = autograd_explain.explain()")  # fmt: skip
    run("%autograd_explain why is my grad None")
    run("%autograd_inspect x y")
    assert generators() == before


def test_all_is_not_well_where_the_recorder_stopped(
    run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from autograd_explain.record.observe.call_sites import CallSites

    def fail(*_: object) -> int:
        raise ValueError("on purpose")

    cell = "%%autograd_check --no-verify\nimport torch\ny = torch.ones(2, requires_grad=True) * 2"
    with monkeypatch.context() as patched:
        patched.setattr(CallSites, "here", fail)
        run(cell)
    told = capsys.readouterr().out
    assert "nothing wrong (" not in told and "stopped on an error of its own" in told
    run(cell)
    assert "nothing wrong (" in capsys.readouterr().out


def test_all_is_not_well_where_it_could_not_be_judged(
    run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from autograd_explain.record import Recording

    def fail(_: Recording) -> tuple[()]:
        raise ValueError("on purpose")

    monkeypatch.setattr(Recording, "judged", fail)
    run("%%autograd_check --no-verify\nimport torch\ny = torch.ones(2, requires_grad=True) * 2")
    assert "nothing wrong (" not in capsys.readouterr().out


def test_a_report_reads_no_cell_that_binds_none_of_its_names(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autograd_explain.inspect.dataflow.reaching_definitions import BindingIndex

    warning = "y = torch.ones(2, requires_grad=True) * 2\ny.grad"
    run("import torch")
    for number in range(20):
        run(f"def f{number}(a):\n    b = a * torch.ones(1)\n    return b\nx{number} = {number}")
    read: list[object] = []
    monkeypatch.setattr(BindingIndex, "__post_init__", _counting(BindingIndex.__post_init__, read))
    run(warning)
    assert 0 < len(read) < 5


def _counting(function: Any, calls: list[object]) -> Any:
    def counted(self: Any) -> None:
        calls.append(self)
        function(self)

    return counted
