"""Copies before a write, of what is saved, of results and of aliases."""

from __future__ import annotations

from typing import Any

import pytest
from rewriting import at, program_of, result, rewritten, spot

from autograd_explain.rewrite.transforms.clone import (
    clone_alias,
    clone_argument,
    clone_before_write,
    clone_operand,
    clone_result,
    clone_unpacked,
)

CASES: list[tuple[Any, str, tuple[Any, ...], str | None]] = [
    (clone_before_write, "x.add_(1)", (), "x = x.clone()\nx.add_(1)"),
    (clone_before_write, "x += 1", (), "x = x.clone()\nx += 1"),
    (clone_before_write, "x.view(-1).mul_(2)", (), "x = x.clone()\nx.view(-1).mul_(2)"),
    (clone_before_write, "torch.relu_(x)", (), "x = x.clone()\ntorch.relu_(x)"),
    (clone_before_write, "torch.add(a, b, out=x)", (), "x = x.clone()\ntorch.add(a, b, out=x)"),
    (clone_before_write, "x.data.mul_(2)", (), "x = x.clone()\nx.mul_(2)"),
    (
        clone_before_write,
        "self.enqueue(k)",
        ("self.queue",),
        "self.queue = self.queue.clone()\nself.enqueue(k)",
    ),
    (clone_before_write, "f(x)", (), None),
    (clone_before_write, "f(x)[0] = 1", (), None),
    (clone_before_write, "while x.add_(1).sum() < 9: pass", (), None),
    (clone_operand, "n = q @ self.queue", ("self.queue",), "n = q @ self.queue.clone()"),
    (clone_operand, "p = self.rec(h[:, t])", ("h[:,t]",), "p = self.rec(h[:, t].clone())"),
    (clone_operand, "y = f(a + b, a)", ("a + b",), "y = f((a + b).clone(), a)"),
    (clone_operand, "y = x * x", ("x",), "y = x.clone() * x.clone()"),
    (clone_operand, "x = f(x)", ("x",), "x = f(x.clone())"),
    (clone_operand, "x[i] = f(x[i])", ("x[i]",), "x[i] = f(x[i].clone())"),
    (clone_operand, "y += w", ("w",), "y += w.clone()"),
    (clone_operand, "y = f(x=w)", ("w",), "y = f(x=w.clone())"),
    (clone_operand, "y = w.w(w=1)", ("w",), "y = w.clone().w(w=1)"),
    (
        clone_operand,
        "s = sum(g * g for g in gs)",
        ("g",),
        "s = sum(g.clone() * g.clone() for g in gs)",
    ),
    (
        clone_operand,
        "s = {n: g.abs() for n, (g, _) in d.items()}",
        ("g",),
        "s = {n: g.clone().abs() for n, (g, _) in d.items()}",
    ),
    (clone_operand, "if (y := f(y)) > 0: pass", ("y",), "if (y := f(y.clone())) > 0: pass"),
    (clone_operand, "y = f(*xs)", ("xs",), None),
    (clone_operand, "y = f(a)", ("b",), None),
    (clone_result, "out = self.relu(out)", (), "out = self.relu(out).clone()"),
    (clone_result, "y = a * b", (), "y = (a * b).clone()"),
    (clone_result, "a, b = f(x)", (), None),
    (clone_alias, "hard = prob.detach()", (), "hard = prob.detach().clone()"),
    (clone_alias, "w = x.data", (), "w = x.detach().clone()"),
    (clone_alias, "t = torch.from_numpy(buf)", (), "t = torch.from_numpy(buf.copy())"),
    (clone_alias, "t = torch.as_tensor(buf)", (), "t = torch.as_tensor(buf).clone()"),
    (clone_alias, "a = x.detach().numpy()", (), "a = x.detach().numpy().copy()"),
    (clone_alias, "v = x.detach().clone()", (), None),
    (clone_alias, "a, b = x.detach(), y.detach()", (), None),
    (clone_argument, "y = g(self.act(r))", ("self.act",), "y = g(self.act(r.clone()))"),
    (clone_argument, "y = self.act(*r)", ("self.act",), None),
    (clone_unpacked, "a, b = x.split(2)", ("b",), "a, b = x.split(2)\nb = b.clone()"),
    (
        clone_unpacked,
        "for r in x.unbind(0):\n    f(r)",
        ("r",),
        "for r in x.unbind(0):\n    r = r.clone()\n    f(r)",
    ),
]


@pytest.mark.parametrize(("transform", "before", "args", "after"), CASES)
def test_forms(transform: Any, before: str, args: tuple[Any, ...], after: str | None) -> None:
    assert rewritten(transform, before, before.splitlines()[0], *args) == after


def test_the_span_chooses_the_expression() -> None:
    program = program_of("hard = f(prob.detach(), other.detach())")
    place = spot(program, "other.detach()", cell=2)
    assert result(clone_alias(program, place)) == "hard = f(prob.detach(), other.detach().clone())"


def test_the_span_may_be_a_view() -> None:
    program = program_of("row = f(x[0])")
    assert result(clone_alias(program, spot(program, "x[0]"))) == "row = f(x[0].clone())"


def test_a_result_inside_a_return() -> None:
    program = program_of("def f(x): return g(torch.sigmoid(x))")
    place = spot(program, "torch.sigmoid(x)")
    assert result(clone_result(program, place)) == ("def f(x): return g(torch.sigmoid(x).clone())")


def test_a_parameter_nobody_reads_later_is_not_rebound() -> None:
    program = program_of("def f(x):\n    x += 1\n")
    assert clone_before_write(program, at(program, "+=")) is None


@pytest.mark.parametrize("decorator", ["property", "cached_property"])
def test_a_property_is_not_assigned(decorator: str) -> None:
    owner = f"class A:\n    @{decorator}\n    def x(self):\n        return self._x\n"
    program = program_of(owner, "a = A()\na.x += 1\n")
    edits = clone_before_write(program, at(program, "+="))
    assert (edits is None) == (decorator == "property")
