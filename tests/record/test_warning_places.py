"""A watched program's warnings name the lines that they name without us, as often as without us."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from notebook import Notebook, fresh_torch

from autograd_explain.record import watch

MODULE_HOOK = """
import torch
m = torch.nn.Linear(2, 2)
m.register_full_backward_hook(lambda module, given, grads: None)
for _ in range(3):
    m(torch.ones(1, 2)).sum().backward()
m(torch.ones(1, 2)).sum().backward()
"""
#: Torch's own line is named, through which the mode goes: no line of the program's.
DEEPER = """
import torch
x = torch.ones(2, requires_grad=True)
for _ in range(2):
    x.sum().backward(create_graph=True)
torch.nn.functional.sigmoid(x)
torch.nn.functional.mse_loss(x, torch.ones(3, 2)).backward()
torch.tensor(x)
torch.nn.functional.softmax(x)
"""
NON_LEAF = """
import torch
import warnings
x = torch.ones(2, requires_grad=True)
y = x * 2
for _ in range(3):
    warnings.warn("of the user's own")
    y.grad
    torch.tensor(x)
y.grad; y.grad
"""


def shown(text: str, action: Any, watched: bool) -> list[tuple[str, str, int]]:
    """Text, file and line of each warning that was shown."""
    notebook = Notebook()
    found: list[tuple[str, str, int]] = []

    def note(message: Any, category: Any, filename: str, line: int, *_: Any) -> None:
        name = filename if "notebook" not in filename else "cell"
        found.append((str(message), name, line))

    with fresh_torch(), warnings.catch_warnings():
        warnings.simplefilter(action)
        warnings.showwarning = note
        code = notebook.add(text)
        if watched:
            with watch(notebook.program, 1) as recording:
                exec(code, notebook.namespace)
            assert recording.limits == ()
        else:
            exec(code, notebook.namespace)
    return found


@pytest.mark.parametrize("action", ["default", "always", "once", "module", "ignore"])
@pytest.mark.parametrize("text", [MODULE_HOOK, DEEPER, NON_LEAF], ids=["hook", "deeper", "grad"])
def test_warnings_are_shown_where_and_as_often_as_without_us(text: str, action: str) -> None:
    assert shown(text, action, watched=True) == shown(text, action, watched=False)


@pytest.mark.parametrize(("text", "number"), [(MODULE_HOOK, 2), (DEEPER, 4), (NON_LEAF, 4)])
def test_each_program_warns(text: str, number: int) -> None:
    assert len(shown(text, "default", watched=False)) == number
