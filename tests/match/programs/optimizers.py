"""Optimizers, schedulers, clipping, gradient scaling."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn, optim
from torch.optim import lr_scheduler

from . import NOT_HERE, raises, warns
from .inplace import leaf


def parameter() -> nn.Parameter:
    return nn.Parameter(torch.ones(2))


@raises("optimizer-nonleaf")
def nonleaf() -> None:
    optim.SGD([leaf(2) * 2], lr=0.1)


@raises("optimizer-empty")
def empty() -> None:
    optim.SGD([], lr=0.1)


@raises("optimizer-params-tensor", type="torch.FloatTensor")
def params_tensor() -> None:
    optim.SGD(leaf(2), lr=0.1)


@raises("optimizer-param-not-tensor", type="str")
def names_instead() -> None:
    optim.SGD(["weight"], lr=0.1)


@warns("optimizer-param-group-duplicate")
def duplicate() -> None:
    w = parameter()
    optim.SGD([w, w], lr=0.1)


@raises("optimizer-param-in-two-groups")
def two_groups() -> None:
    w = parameter()
    optim.SGD([{"params": [w]}, {"params": [w]}], lr=0.1)


@raises("optimizer-load-state-groups")
def other_groups() -> None:
    state = optim.SGD([{"params": [parameter()]}, {"params": [parameter()]}], lr=0.1).state_dict()
    optim.SGD([parameter()], lr=0.1).load_state_dict(state)


@raises("optimizer-load-state-group-size")
def other_size() -> None:
    state = optim.SGD([parameter(), parameter()], lr=0.1).state_dict()
    optim.SGD([parameter()], lr=0.1).load_state_dict(state)


@raises("optimizer-invalid-learning-rate", lr="-0.1")
def negative_rate() -> None:
    optim.Adam([parameter()], lr=-0.1)


def step_of(optimizer: type[Any], grad: torch.Tensor, **options: Any) -> None:
    w = parameter()
    w.grad = grad
    optimizer([w], **options).step()


@raises("optimizer-sparse-adam-dense-grad")
def dense() -> None:
    step_of(optim.SparseAdam, torch.ones(2))


@raises("optimizer-adam-sparse-grad", optimizer="Adam")
def sparse_adam() -> None:
    step_of(optim.Adam, torch.ones(2).to_sparse())


@raises("optimizer-rmsprop-sparse-grad", optimizer="RMSprop")
def sparse_rmsprop() -> None:
    step_of(optim.RMSprop, torch.ones(2).to_sparse())


@raises("optimizer-lbfgs-groups")
def lbfgs_groups() -> None:
    optim.LBFGS([{"params": [parameter()]}, {"params": [parameter()]}])


@raises("optimizer-lbfgs-no-closure")
def lbfgs_step() -> None:
    optim.LBFGS([parameter()]).step()  # type: ignore[call-arg]


@raises("optimizer-fused-unsupported")
def fused() -> None:
    w = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    w.grad = torch.ones_like(w)
    optim.Adam([w], fused=True).step()


@warns("lr-scheduler-before-optimizer")
def scheduler_first() -> None:
    optimizer = optim.SGD([parameter()], lr=0.1)
    lr_scheduler.StepLR(optimizer, 1).step()


@warns("lr-scheduler-step-overridden")
def step_overridden() -> None:
    optimizer = optim.SGD([parameter()], lr=0.1)
    scheduler = lr_scheduler.StepLR(optimizer, 1)
    optimizer.step = lambda: None  # type: ignore[method-assign, assignment, misc]
    scheduler.step()


@warns("lr-scheduler-epoch-deprecated")
def epoch() -> None:
    optimizer = optim.SGD([parameter()], lr=0.1)
    scheduler = lr_scheduler.StepLR(optimizer, 1)
    optimizer.step()
    scheduler.step(3)


@warns("lr-scheduler-get-lr")
def get_lr() -> None:
    lr_scheduler.StepLR(optim.SGD([parameter()], lr=0.1), 1).get_lr()


@raises("lr-scheduler-not-optimizer", type="Linear")
def not_optimizer() -> None:
    lr_scheduler.StepLR(nn.Linear(2, 2), 1)  # type: ignore[arg-type]


@raises("lr-scheduler-initial-lr", index="0")
def initial_lr() -> None:
    lr_scheduler.StepLR(optim.SGD([parameter()], lr=0.1), 1, last_epoch=5)


@raises("lr-scheduler-onecycle-steps", step="3", total="2")
def too_many_steps() -> None:
    optimizer = optim.SGD([parameter()], lr=0.1)
    scheduler = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2)
    for _ in range(3):
        optimizer.step()
        scheduler.step()


@raises("clip-grad-nonfinite", order="2.0")
def nonfinite() -> None:
    w = parameter()
    w.grad = torch.full((2,), torch.inf)
    nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)


@warns("clip-grad-norm-deprecated")
def old_clip() -> None:
    nn.utils.clip_grad_norm([parameter()], 1.0)


def scaler() -> torch.amp.GradScaler:
    return torch.amp.GradScaler("cpu")


def scaled(dtype: torch.dtype = torch.float32) -> tuple[torch.amp.GradScaler, Any]:
    """A scaler and an optimizer whose gradients are ready."""
    w, made = nn.Parameter(torch.ones(2, dtype=dtype)), scaler()
    optimizer = optim.SGD([w], lr=0.1)
    made.scale(w.sum()).backward()
    return made, optimizer


@raises("gradscaler-unscale-fp16")
def half() -> None:
    made, optimizer = scaled(torch.float16)
    made.unscale_(optimizer)


@raises("gradscaler-unscale-twice")
def unscale_twice() -> None:
    made, optimizer = scaled()
    made.unscale_(optimizer)
    made.unscale_(optimizer)


@raises("gradscaler-step-twice")
def step_twice() -> None:
    made, optimizer = scaled()
    made.step(optimizer)
    made.step(optimizer)


@raises("gradscaler-no-inf-checks-step")
def step_without_gradients() -> None:
    made = scaler()
    made.scale(torch.ones(1))
    made.step(optim.SGD([parameter()], lr=0.1))


@raises("gradscaler-no-inf-checks-update")
def update_without_step() -> None:
    made = scaler()
    made.scale(torch.ones(1))
    made.update()


@raises("gradscaler-closure")
def closure() -> None:
    made, optimizer = scaled()
    made.step(optimizer, closure=lambda: 0.0)


@warns("gradscaler-cuda-unavailable")
def scaler_without_cuda() -> None:
    torch.cuda.amp.GradScaler()


@warns("gradscaler-cuda-amp-deprecated")
def old_scaler() -> None:
    torch.cuda.amp.GradScaler()


NOT_HERE["optimizer-capture"] = "raised while a CUDA (or XPU) graph is captured"
