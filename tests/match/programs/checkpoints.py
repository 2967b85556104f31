"""torch.utils.checkpoint."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from . import raises, warns
from .inplace import leaf


@warns("checkpoint-use-reentrant-missing")
def missing() -> None:
    checkpoint(torch.sin, leaf(2))


@warns("checkpoint-sequential-use-reentrant-missing")
def missing_sequential() -> None:
    checkpoint_sequential(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU()), 1, leaf(2))


@warns("checkpoint-no-input-requires-grad")
def plain_input() -> None:
    checkpoint(torch.sin, torch.ones(2), use_reentrant=True)


@raises("checkpoint-grad-incompatible")
def grad_of_reentrant() -> None:
    x = leaf(2)
    torch.autograd.grad(checkpoint(torch.sin, x, use_reentrant=True).sum(), x)


@raises("checkpoint-not-necessary")
def no_output_gradient() -> None:
    checkpoint(lambda x: x.detach(), leaf(2), use_reentrant=True).sum().backward()


@raises("checkpoint-unexpected-kwargs", arguments="scale")
def keyword() -> None:
    checkpoint(torch.sin, leaf(2), use_reentrant=True, scale=2)


class Changing:
    """Behaves otherwise when it runs again."""

    def __init__(self, *functions: Any) -> None:
        self.functions = list(functions)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.functions.pop(0)(x)


def backward_of(*functions: Any) -> None:
    checkpoint(Changing(*functions), leaf(2), use_reentrant=False).sum().backward()


@raises("checkpoint-different-number-of-tensors", expected="2", count="1")
def fewer_tensors() -> None:
    backward_of(lambda x: x.sin().cos(), lambda x: x.sin())


@raises("checkpoint-different-metadata")
def other_metadata() -> None:
    backward_of(lambda x: x.exp(), lambda x: x[:1].exp())


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x.clone())
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        ctx.saved_tensors  # noqa: B018
        ctx.saved_tensors  # noqa: B018
        return grad


@raises("checkpoint-unpacked-twice")
def unpacked_twice() -> None:
    checkpoint(Twice.apply, leaf(2), use_reentrant=False).sum().backward()


@raises("checkpoint-selective-not-found", op="aten.mm.default")
def not_found() -> None:
    from torch.utils.checkpoint import create_selective_checkpoint_contexts

    def contexts() -> Any:
        return create_selective_checkpoint_contexts([torch.ops.aten.mm.default])

    changing = Changing(lambda x: x.sin().sin().sin(), lambda x: (x @ x).sin())
    x = torch.ones(2, 2, requires_grad=True)
    checkpoint(changing, x, use_reentrant=False, context_fn=contexts).sum().backward()
