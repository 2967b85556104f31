"""torch.autograd.Function and gradcheck."""

from __future__ import annotations

from typing import Any

import torch

from . import NOT_HERE, raises, warns
from .inplace import leaf


class Double(torch.autograd.Function):
    """What the broken ones below are made from."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, scale: Any = 2) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad * 2, None


class Legacy(torch.autograd.Function):
    def forward(self, x: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return x


@raises("function-legacy-call")
def legacy_call() -> None:
    Legacy()(leaf(2))


@warns("function-instantiated", function="<class 'programs.custom.Double'>")
def instantiated() -> None:
    Double()


@raises("function-no-backward")
def no_backward() -> None:
    class Forward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    Forward.apply(leaf(2)).sum().backward()


@raises("function-save-for-backward-type", index="0", type="int")
def save_number() -> None:
    class Save(Double):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, scale: Any = 2) -> torch.Tensor:
            ctx.save_for_backward(3)
            return x * 2

    Save.apply(leaf(2))


@raises("function-wrong-number-of-gradients", function="FewBackward", expected="2", count="1")
def too_few_gradients() -> None:
    class Few(Double):
        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return grad

    Few.apply(leaf(2), leaf(2)).sum().backward()


@raises("function-takes-too-few-gradients", taken="2", given="3")
def fewer_than_outputs() -> None:
    class Pair(Double):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> Any:
            return x * 2, x * 3

    Pair.apply(leaf(2))[0].sum().backward()


@raises("function-gradient-for-non-tensor", index="2")
def gradient_for_number() -> None:
    class Both(Double):
        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return grad, grad

    Both.apply(leaf(2), 3).sum().backward()


@raises("function-returns-non-tensor-gradient", type="float")
def number_as_gradient() -> None:
    class Number(Double):
        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return 1.0, None

    Number.apply(leaf(2), 3).sum().backward()


@warns("function-saved-variables")
def saved_variables() -> None:
    class Save(Double):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, scale: Any = 2) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            ctx.saved_variables  # noqa: B018
            return grad, None

    Save.apply(leaf(2), 2).sum().backward()


@raises("function-kwarg-unexpected", argument="factor")
def keyword() -> None:
    Double.apply(leaf(2), factor=3)


@warns("amp-custom-fwd-deprecated")
def custom_fwd() -> None:
    torch.cuda.amp.custom_fwd(lambda ctx, x: x)


@warns("amp-custom-bwd-deprecated")
def custom_bwd() -> None:
    torch.cuda.amp.custom_bwd(lambda ctx, x: x)


@warns("gradcheck-not-double", index="0")
def check_single() -> None:
    torch.autograd.gradcheck(torch.sin, leaf(2), raise_exception=False)


class Wrong(Double):
    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad * 3, None


@raises("gradcheck-jacobian-mismatch", output="0", input="0")
def check_wrong() -> None:
    torch.autograd.gradcheck(Wrong.apply, torch.ones(2, dtype=torch.float64, requires_grad=True))


@raises("gradcheck-not-reentrant", tolerance="0.0")
def check_random() -> None:
    class Random(Double):
        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            return grad * (2 + 1e-9 * torch.rand((), dtype=torch.float64)), None

    torch.autograd.gradcheck(Random.apply, torch.ones(2, dtype=torch.float64, requires_grad=True))


NOT_HERE["function-legacy-attribute"] = (
    "in torch 2.13 an instance's node lives as long as the instance: none of its attributes, and "
    "none of a context whose output is gone, is refused any more"
)


class Mixing(torch.autograd.Function):
    """Its backward hands a kernel tensors of two dtypes."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, compute: Any) -> torch.Tensor:
        ctx.save_for_backward(torch.eye(2, dtype=torch.float64), x.long())
        ctx.compute = compute
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        double, whole = ctx.saved_tensors
        match ctx.compute:
            case "mm":
                return double @ grad, None
            case "addmm":
                return torch.addmm(grad, double, grad), None
            case "bmm":
                return torch.bmm(double[None], grad[None])[0], None
            case "baddbmm":
                return torch.baddbmm(grad[None], double[None], grad[None])[0], None
            case "addmv":
                return grad @ double[0], None
            case "dot":
                return grad[0].dot(double[0]), None
            case "tensordot":
                return torch.tensordot(grad, double, 1), None
            case "put":
                double[[0, 1]] = grad[[0, 1]]
            case "index_add":
                double.index_add_(0, torch.tensor([0, 1]), grad)
            case "scatter":
                double.scatter_(0, whole, grad)
            case "integer":
                whole *= grad
            case "lerp":
                return torch.lerp(grad, double, 0.5), None
            case "solve":
                return torch.linalg.solve(double, grad), None
        return double, None


def _mixing(compute: str) -> Any:
    def run() -> None:
        Mixing.apply(leaf(2, 2), compute).sum().backward()

    run.__name__ = compute
    return run


for _id, _compute, _captures in (
    ("matmul", "mm", {"left": "double", "right": "float"}),
    ("addmm", "addmm", {"left": "Double", "right": "Float"}),
    ("scalar-type", "bmm", {"expected": "Double", "dtype": "Float"}),
    ("batched", "baddbmm", {"second": "double"}),
    ("addmv", "addmv", {}),
    ("dot", "dot", {}),
    ("tensordot", "tensordot", {}),
    ("index-put", "put", {"expected": "Double", "dtype": "Float"}),
    ("index-add", "index_add", {"expected": "Double", "dtype": "Float"}),
    ("scatter", "scatter", {}),
    ("result-type", "integer", {"dtype": "Float", "expected": "Long"}),
    ("lerp", "lerp", {"expected": "float", "dtype": "double"}),
    ("solve", "solve", {"left": "Double", "right": "Float"}),
):
    raises(f"backward-dtype-{_id}", **_captures)(_mixing(_compute))
