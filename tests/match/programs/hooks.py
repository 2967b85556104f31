"""Hooks on tensors, nodes and modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from . import raises, warns
from .inplace import leaf


@raises("hook-not-required")
def hook_of_plain() -> None:
    torch.ones(2).register_hook(print)


def backward_with_hook(hook: Any) -> None:
    x = leaf(2)
    x.register_hook(hook)
    (x * 2).sum().backward()


@raises("hook-returns-non-tensor", type="int")
def hook_returns_number() -> None:
    backward_with_hook(lambda grad: 1)


@raises("hook-changes-size", hook="<lambda>")
def hook_changes_size() -> None:
    backward_with_hook(lambda grad: grad[:1])


@raises("hook-changes-type", hook="<lambda>")
def hook_changes_type() -> None:
    backward_with_hook(lambda grad: grad.to_sparse())


@raises("node-hook-wrong-count", hook="<lambda>", count="1", expected="2")
def node_hook() -> None:
    y = leaf(2) * leaf(2)
    y.grad_fn.register_hook(lambda inputs, outputs: inputs[:1])  # type: ignore[union-attr]
    y.sum().backward()


def ignore(module: nn.Module, inputs: Any, outputs: Any) -> None:
    """A hook that does nothing."""


@raises("module-hook-mixed-kinds")
def mixed_kinds() -> None:
    layer = nn.Linear(2, 2)
    layer.register_backward_hook(ignore)
    layer.register_full_backward_hook(ignore)


@warns("module-hook-no-input-grad")
def no_input_gradient() -> None:
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(ignore)
    layer(torch.ones(2)).sum().backward()


class Module(nn.Module):
    """A module around a function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def old_hook(function: Any, *inputs: Any) -> None:
    module = Module(function)
    module.register_backward_hook(ignore)
    module(*inputs)


@warns("module-hook-output-not-tensor", type="<class 'dict'>")
def output_not_tensor() -> None:
    module = Module(lambda x: {"y": x * 2})
    module.register_full_backward_hook(ignore)
    module(leaf(2))


@warns("module-nonfull-hook-multiple-nodes")
def several_nodes() -> None:
    old_hook(lambda x: (x * 2).sin(), leaf(2))


@warns("module-nonfull-hook-many-inputs")
def several_inputs() -> None:
    old_hook(lambda x, y: x["a"] * y, {"a": leaf(2)}, leaf(2))


@warns("module-nonfull-hook-many-outputs")
def several_outputs() -> None:
    old_hook(lambda x: (x * 2, x * 3), leaf(2))


@warns("module-nonfull-hook-nested-output")
def nested_output() -> None:
    old_hook(lambda x: [x * 2, 1], leaf(2))
