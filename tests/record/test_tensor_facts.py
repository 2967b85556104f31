"""What is asked of arguments without anybody noticing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from autograd_explain.record.observe.tensor_facts import is_unasked, requires_grad_at_sight, unseen


class Asked(torch.Tensor):
    """A subclass that counts the questions it gets."""

    count = 0

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.count += 1
        return super().__torch_function__(func, types, args, kwargs or {})


class Unhashable(type):
    """Classes that are no key of a dict."""

    __hash__ = None  # type: ignore[assignment]


class Value(metaclass=Unhashable):
    pass


WITHOUT, LEAF, SUBCLASS = (
    torch.ones(2),
    nn.Parameter(torch.ones(2)),
    torch.ones(2).as_subclass(Asked),
)


@pytest.mark.parametrize(
    ("values", "known"),
    [
        ((), False),
        ((WITHOUT, 1, slice(2)), False),
        ((WITHOUT, LEAF), True),
        ((LEAF, SUBCLASS), None),
        ((WITHOUT, [LEAF]), None),
        ((WITHOUT, (slice(2), 1), [0, 1]), False),
        ((Value(), LEAF), None),
    ],
)
def test_what_is_known_at_sight(values: tuple[object, ...], known: bool | None) -> None:
    assert requires_grad_at_sight(values) is known
    assert Asked.count == 0


def test_a_mode_would_be_asked() -> None:
    assert is_unasked(WITHOUT) and is_unasked(LEAF) and not is_unasked(SUBCLASS)
    with TorchFunctionMode():
        assert not is_unasked(WITHOUT) and requires_grad_at_sight((WITHOUT,)) is None


def test_operations_of_our_own_are_unseen_also_after_an_error() -> None:
    with pytest.raises(ValueError), unseen():
        assert not (LEAF * 2).requires_grad and type(SUBCLASS * 2) is not None
        raise ValueError
    assert torch.is_grad_enabled() and Asked.count == 0
    assert (LEAF * 2).requires_grad
