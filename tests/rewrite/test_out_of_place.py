"""In-place operations made to compute new tensors."""

from __future__ import annotations

import pytest
from rewriting import at, program_of, result

from autograd_explain.rewrite.transforms.out_of_place import out_of_place

SIMPLE = [
    ("x.add_(1)", "x = x.add(1)"),
    ("x += 1", "x = x + 1"),
    ("x -= lr * g", "x = x - lr * g"),
    ("x *= a + b", "x = x * (a + b)"),
    ("x /= a * b", "x = x / (a * b)"),
    ("x **= -2", "x = x ** -2"),
    ("x @= w", "x = x @ w"),
    ("x += y if c else z", "x = x + (y if c else z)"),
    ("x.mul_(0.9).add_(y, alpha=2)", "x = x.mul(0.9).add(y, alpha=2)"),
    ("self.h.zero_()", "self.h = torch.zeros_like(self.h)"),
    ("x.fill_(-1e9)", "x = torch.full_like(x, -1e9)"),
    ("x.fill_(v)", "x = torch.fill(x, v)"),
    ("x.normal_()", "x = torch.randn_like(x)"),
    ("x.uniform_()", "x = torch.rand_like(x)"),
    ("x.uniform_(-1, 1)", "x = torch.empty_like(x).uniform_(-1, 1)"),
    ("x.copy_(v)", "x = torch.empty_like(x).copy_(v)"),
    ("x.clamp_(min=0)", "x = x.clamp(min=0)"),
    ("x.lt_(0.5)", "x = x.lt(0.5).to(x.dtype)"),
    ("x.masked_fill_(m, 0)", "x = x.masked_fill(m, 0)"),
    ("x.index_fill_(0, i, 1)", "x = x.index_fill(0, i, 1)"),
    ("x.scatter_(1, i, s)", "x = x.scatter(1, i, s)"),
    ("x.fill_diagonal_(0)", "x = x.clone().fill_diagonal_(0)"),
    ("x.data.clamp_(0, 1)", "x = x.clamp(0, 1)"),
    ("x.data = x.data.clamp(0, 1)", "x = x.clamp(0, 1)"),
    ("self.h.data = self.h.detach() * m", "self.h = self.h * m"),
    ("x.data = y.data", "x = y.data"),
    ("x.data.div_(x.data.norm())", "x = x.div(x.norm())"),
    ("x.data /= x.detach().norm()", "x = x / x.norm()"),
    ("x.data.copy_(x.data.clamp(0))", "x = torch.empty_like(x).copy_(x.clamp(0))"),
    ("F.relu(x.data, inplace=True)", "x = F.relu(x)"),
    ("torch.relu_(x.data)", "x = torch.relu(x)"),
    ("x.div_(x.data.norm())", "x = x.div(x.data.norm())"),
    ("x.data.mul_(y.data)", "x = x.mul(y.data)"),
    ("torch.relu_(x)", "x = torch.relu(x)"),
    ("F.relu_(x)", "x = F.relu(x)"),
    ("F.relu(x, inplace=True)", "x = F.relu(x)"),
    ("F.relu(x, True)", "x = F.relu(x)"),
    ("F.leaky_relu(x, 0.1, inplace=True)", "x = F.leaky_relu(x, 0.1)"),
    ("F.dropout(x, p=0.1, training=True, inplace=True)", "x = F.dropout(x, p=0.1, training=True)"),
    (
        "nn.init.xavier_uniform_(w, gain=2.0)",
        "w = nn.init.xavier_uniform_(torch.empty_like(w), gain=2.0)",
    ),
    ("torch.add(a, b, out=x)", "x = torch.add(a, b)"),
    ("torch.max(a, 0, out=(v, i))", "(v, i) = torch.max(a, 0)"),
    ("x = x.add_(1)", "x = x.add(1)"),
    ("x = F.relu(x, inplace=True)", "x = F.relu(x)"),
    ("y = f(x.add_(1))", "x = x.add(1)\ny = f(x)"),
    ("y = self.bn(self.conv(x)).relu_()", "y = self.bn(self.conv(x)).relu()"),
    ("y = F.relu_(self.conv(x))", "y = F.relu(self.conv(x))"),
    ("batch['act'].clamp_(-1, 1)", "batch['act'] = batch['act'].clamp(-1, 1)"),
    ("p['w'] -= lr * p['w'].grad", "p['w'] = p['w'] - lr * p['w'].grad"),
    ("self.h += 1  # why", "self.h = self.h + 1  # why"),
    ("a; x += 1; b", "a; x = x + 1; b"),
    ("x.add_(1);", "x = x.add(1);"),
    ("if c: x += 1", "if c: x = x + 1"),
    ("x += (a +\n      b)", "x = x + (a +\n      b)"),
    ("x.add_(\n    1,  # one\n)", "x = x.add(\n    1,  # one\n)"),
]


@pytest.mark.parametrize(("before", "after"), SIMPLE, ids=[b for b, _ in SIMPLE])
def test_simple_forms(before: str, after: str) -> None:
    program = program_of(f"# top\n{before}\nlast = 1\n")
    place = at(program, before.splitlines()[0], cell=2)
    assert result(out_of_place(program, place)) == f"# top\n{after}\nlast = 1\n"


NOT_HERE = [
    "x[0] += 1",
    "x[mask] += 1",
    "x[i].add_(1)",
    "x.view(-1).add_(1)",
    "x.requires_grad_()",
    "f(x).add_(1)",
    "x.add(1)",
    "y = c and x.add_(1)",
    "y = [x.add_(1) for _ in range(3)]",
    "while x.add_(1).sum() < 3: pass",
    "g(x)[0] += 1",
    "for p in ps: p.add_(1)",
    "x += 1; y += 1",
]


@pytest.mark.parametrize("code", NOT_HERE)
def test_declines(code: str) -> None:
    program = program_of(code)
    assert out_of_place(program, at(program, code, cell=2)) is None


def test_target_chooses_among_several() -> None:
    program = program_of("x += 1; y += 1")
    assert result(out_of_place(program, at(program, "x +="), "y")) == "x += 1; y = y + 1"


def test_target_tells_a_container_from_a_tensor() -> None:
    program = program_of("outs[0] += 1")
    assert result(out_of_place(program, at(program, "outs"), "outs[0]")) == "outs[0] = outs[0] + 1"
    assert out_of_place(program, at(program, "outs"), "outs") is None


FUNCTIONS = [
    ("return x.relu_()", "return x.relu()"),
    ("x.relu_()\nreturn x", "x = x.relu()\nreturn x"),
    ("y = x.relu_()\nreturn x + y", "x = x.relu()\ny = x\nreturn x + y"),
    ("y = x.relu_()\nreturn y", "y = x.relu()\nreturn y"),
    ("x.relu_()", None),  # the caller's tensor is meant
    ("W.add_(x)\nreturn W", None),  # a global: assigning would make it local
    ("for p in x: p.sub_(1)", None),
    ("for t in x:\n    t += 1\n    f(t)", "for t in x:\n    t = t + 1\n    f(t)"),
    ("h = 0\nfor t in x:\n    f(h)\n    h += t", "h = 0\nfor t in x:\n    f(h)\n    h = h + t"),
]


@pytest.mark.parametrize(("body", "after"), FUNCTIONS, ids=[b for b, _ in FUNCTIONS])
def test_inside_a_function(body: str, after: str | None) -> None:
    def wrapped(text: str) -> str:
        return "def f(x):\n" + "".join(f"    {line}\n" for line in text.splitlines())

    program = program_of(wrapped(body))
    needle = next(n for n in (".relu_", "W.add_", "p.sub_", "t += 1", "h += t") if n in body)
    found = result(out_of_place(program, at(program, needle, cell=2)))
    assert found == (None if after is None else wrapped(after))
