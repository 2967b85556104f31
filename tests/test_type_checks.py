"""The user's objects are looked at without running their code."""

from collections import deque
from functools import partial

import torch

from autograd_explain.isolation import type_checks
from autograd_explain.record.detect.piled_hooks import PiledHooks


class Acting:
    """Everything that can be asked of it does something."""

    def __init__(self):
        object.__setattr__(self, "held", 1)

    def __getattribute__(self, name):
        raise AssertionError(name)


class Asked:
    def __call__(self, grad):
        return grad

    def __getattr__(self, name):
        raise ValueError(name)


class Table(dict):
    def items(self):
        raise AssertionError

    __iter__ = __getitem__ = keys = values = items


class Row(list):
    def __iter__(self):
        raise AssertionError

    __getitem__ = __len__ = __iter__


class Odd(RuntimeError):
    def __str__(self):
        raise AssertionError

    __traceback__ = __cause__ = property(__str__)


def test_nothing_is_asked_for_its_class():
    assert type_checks.is_a(Acting(), Acting) and not type_checks.is_a(Acting(), (list, dict))


def test_containers_as_they_hold():
    assert list(type_checks.items(Table(a=1))) == [("a", 1)]
    assert type_checks.elements(Row([1, 2, 3]), 2) == [1, 2]
    assert type_checks.elements(deque([1])) == [1]
    assert type_checks.table_of(Acting()) == {"held": 1} and type_checks.table_of(3) == {}


def test_errors_are_not_asked_either():
    cause = ValueError("why")
    error = Odd("what")
    BaseException.__dict__["__cause__"].__set__(error, cause)
    assert type_checks.message_of(error) == "what"
    assert type_checks.raised_from(error) is cause
    assert type_checks.traceback_of(error) is None
    assert type_checks.message_of(KeyError("a")) == "'a'"


def test_a_hook_is_not_asked_for_its_code():
    weight = torch.ones(2, requires_grad=True)
    weight._backward_hooks = {0: Acting(), 1: partial(Asked()), 2: print}
    piled = PiledHooks()
    for _ in range(3):
        piled.before_step([weight], None, None)
    assert piled.suspect() is None
