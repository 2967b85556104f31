"""What torch's wheel holds of its tests, run plain and watched: equal to the bit, and no alarm.

Every differentiable operator with sample inputs, every module and every optimizer that torch lists
for its own tests (`torch.testing._internal`), one forward and backward (or two steps) of each.
"""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from three_ways import digest
from torch.utils._pytree import tree_leaves

from autograd_explain.program import Program, Source
from autograd_explain.record import watch

_SAMPLES = 2  # of each operator or module
_PARTS = 6

OPERATORS = """\
for op, sample in samples:
    torch.manual_seed(0)
    try:
        out = op(sample.input, *sample.args, **sample.kwargs)
        roots = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor) and t.requires_grad]
        torch.autograd.backward(roots, [torch.ones_like(t) for t in roots])
    except Exception as error:
        out = f"{type(error).__name__}: {error}"
    done(op, sample, out)
"""
MODULES = """\
for module, sample in samples:
    torch.manual_seed(0)
    made = module.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs)
    try:
        out = made(*sample.forward_input.args, **sample.forward_input.kwargs)
        roots = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor) and t.requires_grad]
        torch.autograd.backward(roots, [torch.ones_like(t) for t in roots])
    except Exception as error:
        out = f"{type(error).__name__}: {error}"
    done(module, sample, [out, made])
"""
OPTIMIZERS = """\
for optimizer, sample in samples:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2))
    data = torch.randn(5, 4)
    parameters = list(model.parameters())
    if optimizer.optim_cls is torch.optim.Muon:
        parameters = [p for p in parameters if p.ndim == 2]
    stepping = optimizer.optim_cls(parameters, **sample.kwargs)
    def closure():
        stepping.zero_grad()
        loss = model(data).square().sum()
        loss.backward(create_graph=sample.kwargs.get("differentiable", False))
        return loss
    try:
        for _ in range(2):
            stepping.step(closure)
        out = [p.detach().clone() for p in model.parameters()]
    except Exception as error:
        out = f"{type(error).__name__}: {error}"
    done(optimizer, sample, out)
"""


def operators() -> list[Any]:
    # Importing them takes seconds, and room that each fork of the process would copy.
    from torch.testing._internal.common_methods_invocations import op_db

    return [op for op in op_db if op.supports_autograd and torch.float32 in op.dtypes]


def seed() -> None:
    """Samples are drawn with torch, NumPy and Python's random (`hinge_embedding_loss`' margin)."""
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def samples_of_operators(some: list[Any]) -> Iterator[tuple[Any, Any]]:
    for op in some:
        seed()
        # `op.sample_inputs` looks at the whole stack for each sample: seconds under pytest.
        found = op.sample_inputs_func(op, "cpu", torch.float32, True)
        for sample in itertools.islice(found, _SAMPLES):
            yield op, sample


def samples_of_modules(some: list[Any]) -> Iterator[tuple[Any, Any]]:
    for module in some:
        seed()
        found = module.module_inputs_func(
            module, device="cpu", dtype=torch.float32, requires_grad=True, training=True
        )
        for sample in itertools.islice(found, _SAMPLES):
            if sample.forward_input is not None:
                yield module, sample


def samples_of_optimizers(some: list[Any]) -> Iterator[tuple[Any, Any]]:
    for optimizer in some:
        seed()
        for sample in optimizer.optim_inputs_func(device="cpu"):
            yield optimizer, sample


def given_to(sample: Any) -> list[torch.Tensor]:
    """The tensors of a sample: what has gradients afterwards."""
    given = getattr(sample, "forward_input", sample)
    parts = [getattr(given, name, None) for name in ("input", "args", "kwargs")]
    return [t for t in tree_leaves(parts) if isinstance(t, torch.Tensor)]


def ran(text: str, samples: Iterator[tuple[Any, Any]], watched: bool) -> tuple[list[Any], Any]:
    """What each sample gave, its inputs' gradients included, and the recording."""
    results: list[tuple[str, str]] = []

    def done(about: Any, sample: Any, out: Any) -> None:
        results.append((about.name, digest([out, given_to(sample)])))
        for tensor in given_to(sample):  # some samples of an operator share one
            if tensor.is_leaf:
                tensor.grad = None

    source = Source(1, None, text, text, "<samples>")
    code = compile(text, source.filename, "exec")
    with warnings.catch_warnings(), torch.random.fork_rng(devices=()):
        warnings.simplefilter("ignore")
        seed()
        names = {"torch": torch, "tree_leaves": tree_leaves, "samples": list(samples), "done": done}
        if not watched:
            exec(code, names)
            return results, None
        with watch(Program([source]), 1) as recording:
            exec(code, names)
    return results, recording


def assert_left_alone(text: str, samples: Callable[[list[Any]], Any], some: list[Any]) -> None:
    runs = [ran(text, samples(some), watched=False)[0] for _ in range(2)]
    steady = [i for i, (one, two) in enumerate(zip(*runs, strict=True)) if one == two]
    watched, recording = ran(text, samples(some), watched=True)
    assert len(steady) > 0.9 * len(watched) > 0
    # The last bits of LAPACK's eigenvalues hang on where the memory happens to lie.
    while len(runs) < 8 and any(watched[i] not in [run[i] for run in runs] for i in steady):
        runs.append(ran(text, samples(some), watched=False)[0])
    assert [watched[i] for i in steady if watched[i] not in [run[i] for run in runs]] == []
    assert recording.signals() == ()
    assert recording.limits == ()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("part", range(_PARTS))
def test_operators(part: int) -> None:
    assert_left_alone(OPERATORS, samples_of_operators, operators()[part::_PARTS])


def test_modules() -> None:
    from torch.testing._internal.common_modules import module_db

    assert_left_alone(MODULES, samples_of_modules, module_db)


def test_optimizers() -> None:
    from torch.testing._internal.common_optimizers import optim_db

    assert_left_alone(OPTIMIZERS, samples_of_optimizers, optim_db)
