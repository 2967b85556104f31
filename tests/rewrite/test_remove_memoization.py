"""Values computed at every use instead of once."""

from __future__ import annotations

import pytest
from rewriting import at, program_of, result

from autograd_explain.rewrite.transforms.remove_memoization import (
    always_computed,
    without_memory,
)


def forgotten(code: str) -> str | None:
    program = program_of(code)
    return result(without_memory(program, at(program, "@")))


def unguarded(code: str) -> str | None:
    program = program_of(code)
    return result(always_computed(program, at(program, "if ")))


def test_decorator_goes() -> None:
    code = (
        "class G:\n    # learned\n    @lru_cache(maxsize=1)\n    def a(self):\n        return f()\n"
    )
    assert forgotten(code) == code.replace("    @lru_cache(maxsize=1)\n", "")


def test_cached_property_stays_a_property() -> None:
    code = "class G:\n    @functools.cached_property\n    def a(self):\n        return f()\n"
    assert forgotten(code) == code.replace("functools.cached_property", "property")


def test_memory_that_the_program_uses_stays() -> None:
    assert forgotten("@cache\ndef a():\n    return f()\na.cache_clear()\n") is None


def test_guard_goes() -> None:
    code = (
        "def a(self):\n    if self.x is None:\n        w = f()\n        self.x = w\n"
        "    return self.x\n"
    )
    assert unguarded(code) == "def a(self):\n    w = f()\n    self.x = w\n    return self.x\n"


def test_guard_of_several_steps_goes() -> None:
    body = ("w = f()", "w = w / 2", "self.x = w")
    code = "def a(self):\n    if self.x is None:\n" + "".join(f"        {line}\n" for line in body)
    assert unguarded(code) == "def a(self):\n" + "".join(f"    {line}\n" for line in body)


def test_early_return_goes() -> None:
    code = "def a(k):\n    if k in c:\n        return c[k]\n    c[k] = f(k)\n    return c[k]\n"
    assert unguarded(code) == "def a(k):\n    c[k] = f(k)\n    return c[k]\n"


@pytest.mark.parametrize(
    "code", ["if a is None:\n    a = f()\nelse:\n    a = g(a)\n", "a = 1 if b else 2\n"]
)
def test_no_guard(code: str) -> None:
    assert unguarded(code) is None


@pytest.mark.parametrize(
    "code",
    [
        "class G:\n    @functools.cached_property\n    def a(self):\n        return f()\ndel g.a\n",
        "class G:\n    @cached_property\n    def a(self):\n        return f()\n"
        "g.__dict__.pop('a', None)\n",
        "@cache\ndef a(n):\n    return nn.Linear(n, n).weight * 2\n",
        "@cache\ndef a(n):\n    return w * torch.rand(n)\n",
    ],
)
def test_memory_that_is_needed_stays(code: str) -> None:
    assert forgotten(code) is None


@pytest.mark.parametrize(
    "body",
    [
        "self.x = self.x * 2\n        self.done = True",
        "self.x = f()\n        self.n += 1",
        "self.x = self.w * torch.randn(3)",
        "self.x = f()\n        self.seen.append(self.x)",
    ],
)
def test_guard_that_is_needed_stays(body: str) -> None:
    assert unguarded(f"def a(self):\n    if self.x is None:\n        {body}\n") is None


def test_guard_of_an_entry_goes() -> None:
    code = "def a(k):\n    if k not in c:\n        c[k] = f(k)\n    return c[k]\n"
    assert unguarded(code) == "def a(k):\n    c[k] = f(k)\n    return c[k]\n"
