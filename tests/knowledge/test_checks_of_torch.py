"""What gradcheck, torch.autograd.functional and second derivatives say, as torch raises it."""

from __future__ import annotations

import pytest
from knowledge.played import explained

SETUP = """
import torch
from torch.autograd import functional, gradcheck
from torch.autograd.gradcheck import GradcheckError
x = torch.ones(3, dtype=torch.float64, requires_grad=True)
class Ignoring(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return torch.full_like(grad, 2.0)
class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 3
class Reading(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2 if grad.sum().item() < 9 else grad * 2
class Guessing(Reading):
    @staticmethod
    def backward(ctx, grad):
        try:
            return Reading.backward(ctx, grad)
        except RuntimeError:
            return grad * 3
    @staticmethod
    def jvp(ctx, tangent):
        return Guessing.backward(ctx, tangent)
index = torch.tensor([0, 0, 2])
def second(f):
    source = torch.zeros(3, requires_grad=True)
    (grad,) = torch.autograd.grad(f(source).sum(), source, create_graph=True)
    grad.sum().backward()
"""


@pytest.mark.parametrize(
    ("line", "cause", "variant"),
    [
        ("gradcheck(lambda t: Ignoring.apply(t[:1]), (x,))", "gradcheck_failed", "ignored"),
        (
            "gradcheck(Wrong.apply, (x,), check_forward_ad=True)",
            "gradcheck_failed",
            "forward",
        ),
        ("gradcheck(lambda t: (t * 2).detach(), (x,))", "gradcheck_failed", "cut"),
        ("gradcheck(lambda t: t * 2, (x[:1].expand(3),))", "gradcheck_failed", "overlap"),
        (
            "gradcheck(Reading.apply, (x,), check_batched_grad=True)",
            "gradcheck_failed",
            "batched_error",
        ),
        (
            "gradcheck(Guessing.apply, (x,), check_batched_grad=True)",
            "gradcheck_failed",
            "batched",
        ),
        (
            "gradcheck(Guessing.apply, (x,), check_forward_ad=True, "
            "check_batched_forward_grad=True)",
            "gradcheck_failed",
            "batched",
        ),
        (
            "raise GradcheckError('grad is incorrect size')",
            "gradcheck_failed",
            "kind",
        ),  # torch 2.13 sees the wrong size before gradcheck does
        ("functional.hessian(lambda t: [t.sum()], x)", "functional_argument", "output"),
        ("functional.vjp(lambda t: t.sum(), x, (x, x))", "functional_argument", "vector"),
        ("functional.vjp(lambda t: t * 2, x, [x])", "functional_argument", "vector"),
        ("functional.hessian(lambda t: t.sum(), (x, 2.0))", "functional_argument", ""),
        (
            "functional.jvp(lambda t: torch.ones(2, requires_grad=True) * 2, x, x, strict=True)",
            "strict_jacobian",
            "",
        ),
        (
            "second(lambda s: torch.ones(3).index_reduce(0, index, s, 'prod'))",
            "no_second_derivative",
            "zeros",
        ),
        (
            "second(lambda s: torch.ones(3).scatter_reduce(0, index, s, 'prod'))",
            "no_second_derivative",
            "zeros",
        ),
    ],
)
def test_the_message_is_known(line: str, cause: str, variant: str) -> None:
    found = explained((SETUP, line)).finding
    assert (found.cause, found.variant) == (cause, variant)
