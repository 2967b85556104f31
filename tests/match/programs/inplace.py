"""In-place writes: saved values, leaves, views, overlap, inference mode."""

from __future__ import annotations

import torch

from . import NOT_HERE, raises


def leaf(*shape: int) -> torch.Tensor:
    return torch.ones(shape, requires_grad=True)


@raises("inplace-version-mismatch", shape="[3]", version="1", expected="0", output="0", op="Exp")
def write_after_exp() -> None:
    y = leaf(3).exp()
    y += 1
    y.sum().backward()


@raises("inplace-version-mismatch", type="torch.DoubleTensor", shape="[]")
def write_scalar() -> None:
    y = leaf(2).sum().double().sigmoid()
    y.mul_(2)
    y.backward()


@raises("inplace-version-mismatch-leaf", shape="[2, 2]", version="2", expected="1")
def step_between() -> None:
    w = leaf(2, 2)
    with torch.no_grad():
        w.add_(1)
    y = (leaf(2, 2) @ w).sum()
    with torch.no_grad():
        w.add_(1)
    y.backward()


@raises("inplace-version-mismatch-anomaly", op="Sigmoid")
def write_under_anomaly() -> None:
    with torch.autograd.set_detect_anomaly(True):
        y = leaf(2).sigmoid()
        y.zero_()
        y.sum().backward()


@raises("inplace-version-mismatch-leaf-anomaly", shape="[2]")
def leaf_under_anomaly() -> None:
    with torch.autograd.set_detect_anomaly(True):
        w, x = leaf(2), leaf(2)
        y = (w * x).sum()
        with torch.no_grad():
            w += 1
        y.backward()


@raises("leaf-inplace")
def leaf_add() -> None:
    x = leaf(2)
    x += 1


@raises("leaf-inplace")
def leaf_mask() -> None:
    x = leaf(2)
    x[x > 0] = 0


@raises("view-of-leaf-inplace")
def leaf_slice() -> None:
    leaf(3)[:2] = 0


@raises("leaf-moved-into-graph-interior")
def leaf_swapped_in() -> None:
    x = leaf(2)
    y = (x * 2).sum()
    with torch.no_grad():
        x.requires_grad_(False)
    x.mul_(leaf(2))
    y.backward()


@raises("view-multi-output-inplace", output="0", op="Unbind")
def unbind_write() -> None:
    first, _ = (leaf(2, 2) * 1).unbind()
    first.mul_(2)


@raises("view-multi-output-base-modified")
def split_base_write() -> None:
    base = leaf(4) * 1
    first, _ = base.split(2)
    base.mul_(2)
    first.grad_fn  # noqa: B018


@raises("view-nograd-inplace")
def view_made_without_grad() -> None:
    base = leaf(4) * 1
    with torch.no_grad():
        view = base[:2]
    view.mul_(leaf(2))


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
        return grad


@raises("view-custom-function-inplace", output="0", op="Same")
def custom_view_write() -> None:
    y = Same.apply(leaf(2) * 1)
    y.mul_(2)


@raises("detach-view-inplace")
def detach_view() -> None:
    (leaf(2) * 1)[:1].detach_()


@raises("overlap-written-to-expand")
def write_to_expanded() -> None:
    torch.ones(1).expand(3).add_(1)


@raises("overlap-input-and-output")
def write_over_input() -> None:
    x = torch.arange(4.0)
    torch.add(x[:-1], 1, out=x[1:])


def inference(*shape: int) -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(*shape)


@raises("inference-inplace-outside")
def write_to_inference() -> None:
    inference(2).add_(1)


@raises("inference-saved-for-backward")
def save_inference() -> None:
    leaf(2) * inference(2)


@raises("inference-no-version-counter")
def version_of_inference() -> None:
    inference(2)._version  # noqa: B018


@raises("inference-requires-grad-outside")
def require_grad_of_inference() -> None:
    inference(2).requires_grad_()


NOT_HERE.update(
    {
        "metadata-change-not-allowed": "torch 2.13 allows every metadata change: TensorImpl.h sets "
        "the flag that the check reads to true, whatever it is given",
        "inference-set-version-counter": "guards what backends do in C++; no Python call that sets "
        "a version counter reaches it with an inference tensor",
    }
)
