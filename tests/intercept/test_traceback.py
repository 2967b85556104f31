"""A watched cell's traceback is the one that the cell has without watching."""

import sys
import traceback

import pytest

CELLS = {
    "write": "w += 1",
    "backward": "y = (w * 2).exp()\nz = y.sum()\ny.add_(1)\nz.backward()",
    "function": "def f(t):\n    return t.add_(1)\nf(w)",
    "module": "torch.nn.Linear(2, 3)(torch.ones(5))",
    "grad": "torch.autograd.grad((w * 2), w)",
    "hook": "y = (w * 2).exp()\nh = w.register_hook(lambda g: g)\nz = y.sum()\ny.add_(1)\n"
    "torch.autograd.backward(z)",
    "custom function": "class F(torch.autograd.Function):\n    @staticmethod\n"
    "    def forward(ctx, x):\n        return x * 2\n    @staticmethod\n"
    "    def backward(ctx, g):\n        return g[5]\nF.apply(w.exp()).sum().backward()",
    "wrapped": "try:\n    w += 1\nexcept RuntimeError as e:\n    raise ValueError from e",
    "python": "{}['x']",
}


def frames():
    """The shown traceback and those behind it: file, line, function."""
    error, found = sys.last_value, []
    while error is not None:
        found.append(
            [(f.filename, f.lineno, f.name) for f in traceback.extract_tb(error.__traceback__)]
        )
        error = error.__cause__
    return found


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_the_same_frames(run, shell, capsys, cell):
    run("import torch; w = torch.ones(2, requires_grad=True)")
    shell.execution_count = 10
    run(cell)
    plain, shown = frames(), capsys.readouterr().out.split("── autograd_explain")[0]
    run("%autograd_check on --no-verify")
    shell.execution_count = 10
    run("w = torch.ones(2, requires_grad=True)")
    shell.execution_count = 10
    capsys.readouterr()
    run(cell)
    assert frames() == plain
    assert capsys.readouterr().out.split("── autograd_explain")[0] == shown
    assert "_get_exc_info" not in vars(shell)


def test_an_error_inside_us_stays_visible_to_us(run, session):
    from autograd_explain.intercept import guard

    def broken(incident, options, **more):
        return incident.program.cells["none"]

    session.explainer.explain = broken
    run("import torch; w = torch.ones(2, requires_grad=True)")
    run("%%autograd_check --no-verify\nw += 1")
    assert "in _ask" in guard.report()
