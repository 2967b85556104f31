"""torch.func, vmap and forward-mode AD."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad
from torch.func import grad, vmap

from . import raises, warns

x = torch.ones(3)


@raises("forward-ad-no-level")
def no_level() -> None:
    forward_ad.make_dual(x, x)


@raises("forward-ad-not-implemented", op="_cdist_forward")
def no_forward_derivative() -> None:
    with forward_ad.dual_level():
        torch.cdist(forward_ad.make_dual(torch.ones(2, 2), torch.ones(2, 2)), torch.ones(2, 2))


@raises("forward-ad-inplace-not-implemented", op="igamma_")
def no_forward_derivative_inplace() -> None:
    with forward_ad.dual_level():
        forward_ad.make_dual(torch.rand(3), torch.ones(3)).igamma_(torch.ones(3))


@raises("backward-inside-functorch")
def backward_inside() -> None:
    grad(lambda v: v.sum().backward())(x)


@raises("functorch-saved-tensor-hooks")
def saved_hooks() -> None:
    with torch.autograd.graph.save_on_cpu():
        grad(lambda v: v.sin().sum())(x)


class NoSetup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: torch.Tensor) -> torch.Tensor:
        return v.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


@raises("functorch-function-no-setup-context")
def no_setup_context() -> None:
    grad(lambda v: NoSetup.apply(v).sum())(x)


class NoVmap(torch.autograd.Function):
    @staticmethod
    def forward(v: torch.Tensor) -> torch.Tensor:
        return v.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


@raises("functorch-function-no-vmap", function="NoVmap")
def no_vmap() -> None:
    vmap(NoVmap.apply)(x)


@raises("functorch-requires-grad-inside")
def requires_grad_inside() -> None:
    grad(lambda v: v.detach().clone().requires_grad_().sum())(x)


@raises("functorch-inplace-captured", op="aten::mul_.Tensor")
def captured() -> None:
    outer = torch.ones(3)
    grad(lambda v: outer.mul_(v).sum())(x)


@raises("functorch-escaped-tensor")
def escaped() -> None:
    kept = []
    vmap(lambda v: kept.append(v) or v * 2)(x)  # type: ignore[func-returns-value]
    kept[0] + 1


@raises("functorch-escaped-stacked")
def escaped_and_stacked() -> None:
    kept = []
    vmap(lambda v: kept.append(v) or v * 2)(x)  # type: ignore[func-returns-value]
    torch.stack(kept)


@raises("functorch-grad-nonscalar", dims="1")
def vector_function() -> None:
    grad(lambda v: v * 2)(x)


@raises("functorch-grad-nontensor", type="<class 'float'>")
def number_function() -> None:
    grad(lambda v: 1.0)(x)


@raises("functorch-grad-arg-type", type="<class 'float'>")
def number_argument() -> None:
    grad(lambda v: v * 2)(1.0)


@warns("functorch-module-deprecated", api="vmap", replacement="torch.vmap")
def old_module() -> None:
    import functorch

    functorch.vmap(torch.sin)(x)


@warns("vmap-slow-fallback", op="aten::histc")
def slow() -> None:
    torch._C._functorch._set_vmap_fallback_warning_enabled(True)
    vmap(torch.histc)(torch.rand(3, 4))


@raises("vmap-inplace", op="inplace arithmetic")
def inplace_vmap() -> None:
    vmap(lambda v: torch.zeros(2).mul_(v))(torch.ones(3, 2))


@raises("vmap-inplace", op="aten::scatter_")
def inplace_scatter_vmap() -> None:
    vmap(lambda v: torch.zeros(2).scatter_(0, torch.tensor([0, 1]), v))(torch.ones(3, 2))


@raises("vmap-item")
def item() -> None:
    vmap(lambda v: v.item())(x)


@raises("vmap-control-flow")
def control_flow() -> None:
    vmap(lambda v: v if v > 0 else -v)(x)


@raises("vmap-dynamic-shape", op="aten::nonzero")
def dynamic_shape() -> None:
    vmap(torch.nonzero)(torch.ones(3, 2))


@raises("vmap-boolean-mask")
def mask() -> None:
    vmap(lambda v, m: v[m])(torch.ones(3, 2), torch.ones(3, 2, dtype=torch.bool))


@raises("vmap-random")
def random() -> None:
    vmap(lambda v: v + torch.rand(()))(x)


@raises("vmap-batch-norm")
def batch_norm() -> None:
    vmap(torch.nn.BatchNorm1d(2))(torch.ones(3, 4, 2))


@raises("vmap-in-dims-structure", in_dims="(0, 0)")
def in_dims_structure() -> None:
    vmap(torch.sin, in_dims=(0, 0))(x)


@raises("vmap-in-dims-non-tensor", in_dim="0", type="<class 'float'>")
def in_dims_non_tensor() -> None:
    vmap(torch.mul, in_dims=(0, 0))(x, 2.0)


@raises("vmap-sizes-differ", sizes="[3, 4]")
def sizes_differ() -> None:
    vmap(torch.mul)(x, torch.ones(4))


@raises("vmap-non-tensor-output", type="<class 'int'>")
def non_tensor_output() -> None:
    vmap(lambda v: 1)(x)
