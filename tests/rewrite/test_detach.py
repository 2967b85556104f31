"""The graph ended at a value, a state or a logged loss."""

from __future__ import annotations

from typing import Any

import pytest
from rewriting import program_of, result, rewritten, spot

from autograd_explain.rewrite.transforms.detach import detach_expression, detach_use, detached_at

CASES: list[tuple[Any, str, tuple[Any, ...], dict[str, Any], str | None]] = [
    (detach_expression, "self.h = h", ("self.h",), {}, "self.h = h.detach()"),
    (detach_expression, "self.h = a + b", ("self.h",), {}, "self.h = (a + b).detach()"),
    (detach_expression, "self.h = g = f(x)", ("self.h",), {}, "self.h = g = f(x).detach()"),
    (detach_expression, "self.h = h.detach()", ("self.h",), {}, None),
    (
        detach_expression,
        "out, self.state = self.rnn(x, self.state)",
        ("self.state",),
        {},
        "out, new_state = self.rnn(x, self.state)\nself.state = new_state.detach()",
    ),
    (
        detach_expression,
        "out, self.hidden = rnn(x)",
        ("self.hidden",),
        {"state": True},
        "out, new_hidden = rnn(x)\nself.hidden = tuple(s.detach() for s in new_hidden)",
    ),
    (
        detach_expression,
        "out, (self.h, c) = rnn(x)",
        ("self.h",),
        {},
        "out, (new_h, c) = rnn(x)\nself.h = new_h.detach()",
    ),
    (detach_expression, "self.h, self.c = h, c", ("self.c",), {}, "self.h, self.c = h, c.detach()"),
    (detach_expression, "self.s = (h, c)", ("self.s",), {}, "self.s = (h.detach(), c.detach())"),
    (detach_expression, "out, h = rnn(x, h)", ("h",), {}, "out, h = rnn(x, h)\nh = h.detach()"),
    (detach_expression, "l = f(D(fake), ones)", ("fake",), {}, "l = f(D(fake.detach()), ones)"),
    (detach_expression, "return_ = fake", ("other",), {}, None),
    (detach_use, "out, h = rnn(x, h)", ("h",), {}, "out, h = rnn(x, h.detach())"),
    (
        detach_use,
        "out, s = rnn(x, (h, c))",
        ("(h, c)",),
        {},
        "out, s = rnn(x, (h.detach(), c.detach()))",
    ),
    (
        detach_use,
        "out, s = rnn(x, s)",
        ("s",),
        {"state": True},
        "out, s = rnn(x, tuple(s.detach() for s in s))",
    ),
    (detach_use, "out = rnn(*s)", ("s",), {}, None),
]


@pytest.mark.parametrize(("transform", "before", "args", "options", "after"), CASES)
def test_forms(
    transform: Any, before: str, args: Any, options: dict[str, Any], after: str | None
) -> None:
    assert rewritten(transform, before, before, *args, **options) == after


def test_the_fresh_name_is_not_taken() -> None:
    code = (
        "def f(self, x):\n    state = 1\n    out, self.state = self.rnn(x)\n    return out, state\n"
    )
    text = rewritten(detach_expression, code, "self.rnn", "self.state")
    assert text is not None
    assert "out, new_state = self.rnn(x)\n    self.state = new_state.detach()\n" in text


def test_several_are_detached_all_or_none() -> None:
    program = program_of("a.append(x)\nb.append(y.detach())\nc.append(z)\n")
    first, ended, last = (spot(program, needle) for needle in ("x", "y.detach()", "z"))
    both = result(detached_at(program, first, last))
    assert both == "a.append(x.detach())\nb.append(y.detach())\nc.append(z.detach())\n"
    assert detached_at(program, first, ended) is None
    assert detached_at(program, first, None) is None
