"""The same mistakes in other shapes than the cases: the cause, its line, and what is proposed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from knowledge.played import edited, play

from autograd_explain.model import What


@dataclass(frozen=True)
class Shape:
    """A notebook, the cause it is to be explained by, and the source of the line to blame.

    `repaired` is a piece of text that the first rewrite brings in ("" where there is none).
    """

    name: str
    cells: tuple[str, ...]
    cause: str
    line: str = ""
    repaired: str = ""


SHAPES = (
    Shape(
        "gradients of a Function with setup_context",
        (
            """import torch
class Power(torch.autograd.Function):
    @staticmethod
    def forward(x, n):
        return x ** n
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.n = inputs
        ctx.save_for_backward(x)
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return ctx.n * x ** (ctx.n - 1) * grad
x = torch.ones(3, requires_grad=True)""",
            "Power.apply(x, 3).sum().backward()",
        ),
        "function_gradients",
        "return ctx.n * x ** (ctx.n - 1) * grad",
        "* grad, None",
    ),
    Shape(
        "a gradient that is missing for a trained tensor",
        (
            """import torch
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w
    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad * w
x, w = (torch.ones(3, requires_grad=True) for _ in range(2))""",
            "Scale.apply(x, w).sum().backward()",
        ),
        "function_gradients",
        "return grad * w",
        "        return grad * w, torch.autograd.functional.vjp(lambda w: x * w, w, grad)[1]",
    ),
    Shape(
        "a gradient for a number",
        (
            """import torch
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.w = w
        return x * w
    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.w, grad.sum()
x = torch.ones(3, requires_grad=True)
Scale.apply(x, 2.0).sum().backward()""",
        ),
        "function_gradients",
        "return grad * ctx.w, grad.sum()",
        "return grad * ctx.w, None",
    ),
    Shape(
        "a product of two dtypes in backward",
        (
            """import torch
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x.double(), w)
        return x @ w
    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w.t(), x.t() @ grad
x, w = (torch.ones(2, 2, requires_grad=True) for _ in range(2))""",
            "Scale.apply(x, w).sum().backward()",
        ),
        "function_gradients",
        "return grad @ w.t(), x.t() @ grad",
        "x.t().to(grad.dtype) @ grad",
    ),
    Shape(
        "an indexed write of another dtype in backward",
        (
            """import torch
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x.double(), w)
        return x @ w
    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        x[[0, 1]] = grad[[0, 1]]
        return x, None
x, w = (torch.ones(2, 2, requires_grad=True) for _ in range(2))""",
            "Scale.apply(x, w).sum().backward()",
        ),
        "function_gradients",
        "x[[0, 1]] = grad[[0, 1]]",
        "= grad[[0, 1]].to(x.dtype)",
    ),
    Shape(
        "a checkpointed method that counts its calls",
        (
            """import torch
from torch.utils.checkpoint import checkpoint
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls = torch.nn.Linear(2, 2), 0
    def body(self, x):
        self.calls += 1
        h = self.layer(x)
        return h.tanh() if self.calls == 1 else h
    def forward(self, x):
        return checkpoint(self.body, x, use_reentrant=False)
net = Net()""",
            "net(torch.ones(1, 2)).sum().backward()",
        ),
        "checkpoint_recomputed_differently",
        "self.calls += 1",
        "checkpoint(self.body, x, self.calls, use_reentrant=False)",
    ),
    Shape(
        "a checkpointed function that throws a die",
        (
            """import random
import torch
from torch.utils.checkpoint import checkpoint
rolls = random.Random(0)
random.seed(3)
def block(x):
    if random.random() < 0.5:
        return x.sin().cos()
    return x.sin()
x = torch.ones(2, requires_grad=True)
for _ in range(20):
    checkpoint(block, x, use_reentrant=False).sum().backward()""",
        ),
        "checkpoint_recomputed_differently",
        "if random.random() < 0.5:",
        "if torch.rand(()).item() < 0.5:",
    ),
    Shape(
        "a logarithm of zero in anomaly mode",
        (
            """import torch
torch.autograd.set_detect_anomaly(True, check_nan=True)
p = torch.tensor([0.0, 0.5, 0.5], requires_grad=True)
q = torch.relu(p)""",
            "entropy = -(q * q.log()).sum()\nentropy.backward()",
        ),
        "anomaly_nan",
        "entropy = -(q * q.log()).sum()",
        "q * q.clamp_min(1e-12).log()",
    ),
    Shape(
        "a conditional expression under vmap",
        (
            "import torch\nfrom torch.func import vmap\nx = torch.tensor([-1.0, 2.0])",
            "y = vmap(lambda v: v if v > 0 else 0.1 * v)(x)",
        ),
        "vmap_data_dependent",
        "y = vmap(lambda v: v if v > 0 else 0.1 * v)(x)",
        "torch.where(v > 0, v, 0.1 * v)",
    ),
    Shape(
        "a number under vmap",
        (
            """import torch
from torch.func import vmap
def scaled(v):
    top = v.max().item()
    return v / top
y = vmap(scaled)(torch.ones(3, 2))""",
        ),
        "vmap_data_dependent",
        "top = v.max().item()",
        "top = v.max()\n",
    ),
    Shape(
        "a hook on a batch",
        (
            "import torch\nbatch = torch.randn(2, 3)\nlayer = torch.nn.Linear(3, 1)",
            "batch.register_hook(print)\nlayer(batch).sum().backward()",
        ),
        "hook_on_constant",
        "batch = torch.randn(2, 3)",
        "torch.randn(2, 3, requires_grad=True)",
    ),
    Shape(
        "a checkpoint differentiated by grad",
        (
            """import torch
from torch.utils.checkpoint import checkpoint
x = torch.ones(2, requires_grad=True)
y = checkpoint(torch.sin, x, use_reentrant=True)""",
            "torch.autograd.grad(y.sum(), x)",
        ),
        "checkpoint_use_reentrant",
        "y = checkpoint(torch.sin, x, use_reentrant=True)",
        "use_reentrant=False",
    ),
    Shape(
        "dropout under vmap",
        (
            """import torch
from torch.func import vmap
drop = torch.nn.Dropout(0.5)
y = vmap(drop)(torch.ones(4, 3))""",
        ),
        "vmap_randomness",
        "y = vmap(drop)(torch.ones(4, 3))",
        'vmap(drop, randomness="different")',
    ),
    Shape(
        "an operation without a derivative, met in backward",
        (
            """import torch
x = torch.ones(2, requires_grad=True)
y = torch.igamma(x, torch.ones(2))
y.sum().backward()""",
        ),
        "no_derivative",
        "y = torch.igamma(x, torch.ones(2))",
    ),
    Shape(
        "an operation without a derivative inside a distribution",
        (
            """import torch
from torch.distributions import Gamma
log_shape, rate = torch.zeros((), requires_grad=True), torch.ones(3, requires_grad=True)
def left(shape, t):
    return 1.0 - Gamma(shape, rate).cdf(t)
loss = -torch.log(left(log_shape.exp(), torch.tensor([1.0, 2.0, 3.0]))).sum()
loss.backward()""",
        ),
        "no_derivative",
        "return 1.0 - Gamma(shape, rate).cdf(t)",
    ),
)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_shape(shape: Shape) -> None:
    found = play(shape.cells)
    assert found.trouble == ""
    assert found.diagnosis is not None, found.output
    finding, rewrites = found.diagnosis.finding, found.diagnosis.rewrites
    assert finding.cause == shape.cause
    cause = finding.event(What.CAUSE)
    blamed = "" if cause is None or cause.place is None else cause.place.source
    assert blamed == shape.line
    assert bool(rewrites) == bool(shape.repaired)
    if rewrites:
        assert shape.repaired in "\n".join(edited(shape.cells, rewrites[0])) + "\n"
