"""Correct training programs under watch: the same losses and gradients to the bit, and no alarm.

`training_programs.py` makes one from each seed; `--programs N` tries more of them.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from notebook import Notebook
from torch import nn
from training_programs import program

from autograd_explain.record import Recording, watch

_PER_TEST = 20


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" in metafunc.fixturenames:
        number = metafunc.config.getoption("--programs")
        batches = [range(i, min(i + _PER_TEST, number)) for i in range(0, number, _PER_TEST)]
        metafunc.parametrize("seeds", batches, ids=lambda r: f"{r.start}-{r.stop - 1}")


def test_correct_programs_are_left_alone(seeds: range) -> None:
    for seed in seeds:
        text = program(seed)
        plain, _ = run(text)
        watched, recording = run(text, watched=True)
        assert recording is not None
        told = [(s.name, {k: [m.place.source for m in v] for k, v in s.moments.items()})
                for s in recording.signals()]  # fmt: skip
        assert told == [], f"seed {seed}:\n{text}"
        assert recording.limits == (), f"seed {seed}: {recording.limits}"
        assert_same(outcome(watched), outcome(plain), f"seed {seed}:\n{text}")


def run(text: str, *, watched: bool = False) -> tuple[dict[str, Any], Recording | None]:
    """A program as one cell of its own; its namespace and, if watched, what was recorded."""
    notebook = Notebook()
    code = notebook.add(text)
    with torch.random.fork_rng(devices=()):
        if not watched:
            exec(code, notebook.namespace)
            return notebook.namespace, None
        with watch(notebook.program, 1) as recording:
            exec(code, notebook.namespace)
    return notebook.namespace, recording


def outcome(namespace: dict[str, Any]) -> list[tuple[str, Any]]:
    """Losses, then every parameter, buffer and gradient of the program's names."""
    found = [("losses", namespace["losses"])]
    for name, value in namespace.items():
        tensors = leaves(name, value)
        found += [(n, t.detach()) for n, t in tensors]
        found += [(f"{n}.grad", t.grad) for n, t in tensors if t.is_leaf and t.grad is not None]
    return found


def leaves(name: str, value: Any) -> list[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        return [(name, value)]
    if isinstance(value, nn.Module):
        return [(f"{name}.{n}", t) for n, t in value.state_dict(keep_vars=True).items()]
    return []


def assert_same(watched: Any, plain: Any, where: str) -> None:
    """Equal to the bit, in nested lists and tuples too."""
    if isinstance(plain, torch.Tensor):
        assert torch.equal(watched, plain) or both_nan(watched, plain), where
    elif isinstance(plain, (list, tuple)):
        assert len(watched) == len(plain), where
        for one, other in zip(watched, plain, strict=True):
            assert_same(one, other, where)
    else:
        assert watched == plain, where


def both_nan(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(torch.equal(one.isnan(), other.isnan()) and torch.allclose(one, other, 0, 0, True))


def test_programs_are_of_many_sorts() -> None:
    """Nearly every program of the first 200 is one of its own."""
    assert len({program(seed).partition("manual_seed")[2][4:] for seed in range(200)}) > 180
