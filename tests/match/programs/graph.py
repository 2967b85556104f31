"""Backward without a graph, twice, or through what has no derivative; anomaly mode."""

from __future__ import annotations

from typing import Any

import torch

from . import NOT_HERE, raises, warns
from .inplace import leaf


@raises("backward-twice")
def twice() -> None:
    y = leaf(2).exp().sum()
    y.backward()
    y.backward()


@raises("compile-donated-buffers")
def compiled_with_retain() -> None:
    @torch.compile(backend="aot_eager", dynamic=True)
    def f(x: torch.Tensor) -> torch.Tensor:
        return (x.sin().exp() * 2).sum()

    f(leaf(3)).backward(retain_graph=True)


@raises("compile-double-backward")
def compiled_twice_differentiable() -> None:
    @torch.compile(backend="aot_eager")
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.sin().sum()

    x = leaf(3)
    (grad,) = torch.autograd.grad(f(x), x, create_graph=True)
    grad.sum().backward()


@raises("no-grad-fn", index="0")
def no_graph() -> None:
    torch.ones(2).sum().backward()


@raises("backward-on-non-tensor", type="float")
def backward_of_item() -> None:
    loss = leaf(2).sum().item()
    loss.backward()  # type: ignore[attr-defined]


@raises("derivative-not-implemented", op="igamma: input")
def no_derivative() -> None:
    torch.igamma(leaf(2), torch.ones(2)).sum().backward()


@raises("composite-derivative-not-implemented")
def no_derivative_of_composite() -> None:
    x = leaf(4)
    call = torch.ops.aten._fake_quantize_learnable_per_tensor_affine_backward
    call(x, x, x, x, 0, 1)[0].sum().backward()


@raises("not-differentiable-argument")
def not_differentiable_argument() -> None:
    torch.nn.functional.multi_margin_loss(leaf(2, 2), torch.tensor([0, 1]), weight=leaf(2))


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.exp()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 2


@raises("once-differentiable-twice")
def once_differentiable() -> None:
    x = leaf(2)
    (grad,) = torch.autograd.grad((Once.apply(x) ** 2).sum(), x, create_graph=True)
    grad.sum().backward()


@torch.library.custom_op("match_programs::plain", mutates_args=())
def plain(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@raises("custom-op-no-autograd")
def custom_op() -> None:
    plain(leaf(2)).sum().backward()


@warns("autograd-key-not-registered", op="match_programs::raw")
def raw_op() -> None:
    library = torch.library.Library("match_programs", "FRAGMENT")
    library.define("raw(Tensor x) -> Tensor")
    library.impl("raw", lambda x: x.clone(), "CPU")
    torch.ops.match_programs.raw(leaf(2)).sum().backward()


@raises("complex-output-not-supported", op="silu")
def complex_output() -> None:
    torch.nn.functional.silu(torch.ones(2, dtype=torch.complex64, requires_grad=True))


@warns("anomaly-enabled")
def anomaly() -> None:
    with torch.autograd.detect_anomaly():
        pass


def nan_in_backward(create: bool) -> None:
    x = torch.zeros(1, requires_grad=True)
    with torch.autograd.set_detect_anomaly(create):
        y = (x.sqrt() * 0).sum()
    with torch.autograd.set_detect_anomaly(True):
        y.backward()


@raises("anomaly-nan", op="SqrtBackward0", output="0")
def nan_found() -> None:
    nan_in_backward(create=True)


@warns("anomaly-traceback", op="SqrtBackward0")
def nan_with_traceback() -> None:
    nan_in_backward(create=True)


@warns("anomaly-no-forward-info", op="SqrtBackward0")
def nan_without_traceback() -> None:
    nan_in_backward(create=False)


@warns("grad-layout-contract", shape="[2, 2]", strides="[1, 2]")
def layout() -> None:
    x = leaf(2, 2)
    x.grad = torch.ones(2, 2).t()
    (x * 2).sum().backward()


@raises("uninitialized-parameter", api="<method 'sum' of 'torch._C.TensorBase' objects>")
def lazy() -> None:
    torch.nn.LazyLinear(2).weight.sum()


NOT_HERE.update(
    {
        "accumulate-grad-stream-mismatch": "compares CUDA streams",
        "autograd-and-fork": "raised where the parent's backward started device threads: "
        "without an accelerator there are none",
        "cublas-no-context": "raised by cuBLAS in a CUDA build",
        "cudnn-rnn-training-mode": "raised by cuDNN in a CUDA build",
        "cudnn-rnn-double-backward": "raised by cuDNN in a CUDA build",
    }
)
