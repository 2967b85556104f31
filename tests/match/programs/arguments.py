"""What is given to backward and grad, assigned to .grad, and read from it."""

from __future__ import annotations

import torch

from . import raises, warns
from .inplace import leaf


@warns("nonleaf-grad-access")
def grad_of_intermediate() -> None:
    (leaf(2) * 2).grad  # noqa: B018


@raises("retain-grad-not-required")
def retain() -> None:
    torch.ones(2).retain_grad()


@raises("parameter-assign-tensor", type="torch.FloatTensor", parameter="weight")
def assign_parameter() -> None:
    torch.nn.Linear(2, 2).weight = torch.ones(2, 2)  # type: ignore[assignment]


@raises("grad-none-attribute", attribute="zero_")
def zero_missing_grad() -> None:
    leaf(2).grad.zero_()  # type: ignore[union-attr]


@raises("grad-none-attribute", attribute="data")
def data_of_missing_grad() -> None:
    w = leaf(2)
    w.data -= 0.1 * w.grad.data  # type: ignore[union-attr]


@raises("grad-none-arithmetic", operator="*", left="float")
def scale_missing_grad() -> None:
    w = leaf(2)
    w.data -= 0.1 * w.grad  # type: ignore[operator]


@raises("grad-none-arithmetic", operator="-=", left="Parameter")
def subtract_missing_grad() -> None:
    w = torch.nn.Parameter(torch.ones(2))
    with torch.no_grad():
        w -= w.grad  # type: ignore[operator]


@raises("grad-none-first", operator="*", right="int")
def double_missing_grad() -> None:
    leaf(2).grad * 2  # type: ignore[operator]


@raises("grad-none-unary", operator="unary -")
def negate_missing_grad() -> None:
    -leaf(2).grad  # type: ignore[operator]


@raises("scalar-output-only")
def vector_loss() -> None:
    (leaf(2) * 2).backward()


@raises("real-scalar-output-only", dtype="torch.complex64")
def complex_loss() -> None:
    torch.ones((), dtype=torch.complex64, requires_grad=True).mul(2).backward()


@raises(
    "grad-output-shape-mismatch", index="0", shape="torch.Size([3])", expected="torch.Size([2])"
)
def wrong_gradient_shape() -> None:
    (leaf(2) * 2).backward(torch.ones(3))


@raises("grad-output-wrong-type", type="int")
def gradient_of_wrong_type() -> None:
    torch.autograd.backward([leaf(2).sum()], [1])  # type: ignore[list-item]


@raises("grad-input-not-tensor", type="str")
def grad_of_a_name() -> None:
    torch.autograd.grad(leaf(2).sum(), ["x"])  # type: ignore[list-item]


@raises("grad-of-nongrad-input")
def grad_of_plain() -> None:
    torch.autograd.grad(leaf(2).sum(), torch.ones(2))


@raises("unused-input", index="1")
def grad_of_unused() -> None:
    x = leaf(2)
    torch.autograd.grad(x.sum(), (x, leaf(2)))


@warns("create-graph-reference-cycle")
def create_graph() -> None:
    leaf(2).exp().sum().backward(create_graph=True)


@raises("grad-assign-size", shape="[3]", expected="[2]")
def assign_grad_size() -> None:
    leaf(2).grad = torch.ones(3)


@raises("grad-assign-dtype", dtype="double", expected="Float")
def assign_grad_dtype() -> None:
    leaf(2).grad = torch.ones(2, dtype=torch.float64)


@raises("grad-assign-device", device="meta", expected="cpu")
def assign_grad_device() -> None:
    leaf(2).grad = torch.ones(2, device="meta")


@raises("grad-assign-not-tensor", type="int")
def assign_grad_number() -> None:
    leaf(2).grad = 0  # type: ignore[assignment]


class Wrong(torch.autograd.Function):
    """Gives back a gradient that does not belong to its input."""

    @staticmethod
    def forward(ctx: object, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        ctx.gradient = gradient  # type: ignore[attr-defined]
        return x.clone()

    @staticmethod
    def backward(ctx: object, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        return ctx.gradient, None  # type: ignore[attr-defined]


@raises("invalid-gradient-shape", op="WrongBackward", index="0", shape="[3]", expected="[2]")
def invalid_shape() -> None:
    Wrong.apply(leaf(2), torch.ones(3)).sum().backward()


@raises("invalid-gradient-device", op="WrongBackward", index="0", expected="cpu", device="meta")
def invalid_device() -> None:
    Wrong.apply(leaf(2), torch.ones(2, device="meta")).sum().backward()


@raises("found-dtype", dtype="Double", expected="Float")
def loss_dtype() -> None:
    torch.nn.functional.huber_loss(leaf(2), torch.ones(2, dtype=torch.float64)).backward()


@raises("functional-hessian-single-element", api="hessian")
def hessian_of_vector() -> None:
    torch.autograd.functional.hessian(lambda x: x * 2, torch.ones(2))


@raises("functional-arg-type", argument="inputs", api="jacobian", type="<class 'float'>")
def jacobian_of_float() -> None:
    torch.autograd.functional.jacobian(lambda x: x * 2, 1.0)  # type: ignore[arg-type]


@raises("requires-grad-ctor-integer")
def integer_leaf() -> None:
    torch.tensor([1, 2], requires_grad=True)


@raises("requires-grad-attr-integer")
def integer_attribute() -> None:
    torch.tensor([1, 2]).requires_grad = True


@raises("requires-grad-method-integer")
def integer_method() -> None:
    torch.tensor([1, 2]).requires_grad_()


@raises("requires-grad-flag-nonleaf")
def freeze_result() -> None:
    (leaf(2) * 2).requires_grad = False


@raises("requires-grad-flag-nonleaf-true")
def flag_of_result() -> None:
    (leaf(2) * 2).requires_grad = True


@raises("out-requires-grad", op="add")
def out_argument() -> None:
    torch.add(leaf(2), 1, out=torch.ones(2))


@warns("volatile-set")
def volatile() -> None:
    torch.autograd.Variable(torch.ones(2), volatile=True)


@raises("variable-data-not-tensor", type="int")
def variable_of_int() -> None:
    torch.autograd.Variable(1)
