"""Index assignments that leave the old tensor alone."""

from __future__ import annotations

import pytest
from rewriting import rewritten

from autograd_explain.rewrite.transforms.clone import functional_write

CASES = [
    ("x[x < 0] = 0", "x = x.clone()\nx[x < 0] = 0"),
    ("x[x > 1] = float('-inf')  # c", "x = x.clone()\nx[x > 1] = float('-inf')  # c"),
    ("x[m] = v", "x = x.clone()\nx[m] = v"),
    ("x[y < 0] = 0", "x = x.clone()\nx[y < 0] = 0"),
    ("x[i] = v", "x = x.clone()\nx[i] = v"),
    ("x[2:] = v", "x = x.clone()\nx[2:] = v"),
    ("x[:, t] += v", "x = x.clone()\nx[:, t] += v"),
    ("self.buf[:, t] = v", "self.buf = self.buf.clone()\nself.buf[:, t] = v"),
    ("x[0:2].add_(1)", "x = x.clone()\nx[0:2].add_(1)"),
    ("x.data[m] = 0.0", "x = x.clone()\nx[m] = 0.0"),
    ("if c: x[0] = 1", "if c: x = x.clone(); x[0] = 1"),
    ("a = 1; x[0] = a; b = 2", "a = 1; x = x.clone(); x[0] = a; b = 2"),
    (
        "h[t + 1] = torch.tanh(h[t] * w)",
        "new_value = torch.tanh(h[t] * w)\nh = h.clone()\nh[t + 1] = new_value",
    ),
    ("x[1] = x[0]", "x = x.clone()\nx[1] = x[0]"),
    ("xs[0][1:] += 1", None),
    ("xs[0] += 1", None),
    ("d['k'] = v", None),
    ("x.add_(1)", None),
    ("x += 1", None),
]


@pytest.mark.parametrize(("before", "after"), CASES, ids=[c[0] for c in CASES])
def test_forms(before: str, after: str | None) -> None:
    assert rewritten(functional_write, before, before) == after


CONTAINERS = [
    ("xs = [a, b]\nxs[0] = v", None, None),
    ("xs = [a, b]\nxs[0][1:] += 1", None, "xs = [a, b]\nxs[0] = xs[0].clone()\nxs[0][1:] += 1"),
    ("xs = torch.zeros(3)\nxs[0] += 1", None, "xs = torch.zeros(3)\nxs = xs.clone()\nxs[0] += 1"),
    ("xs[0] += 1", "xs", "xs = xs.clone()\nxs[0] += 1"),
    ("xs[0][1] = 1", "xs[0]", "xs[0] = xs[0].clone()\nxs[0][1] = 1"),
]


@pytest.mark.parametrize(("before", "target", "after"), CONTAINERS)
def test_a_list_of_tensors_is_told_from_a_tensor(
    before: str, target: str | None, after: str | None
) -> None:
    assert rewritten(functional_write, before, before.splitlines()[-1], target) == after


def test_the_caller_must_see_the_change() -> None:
    code = "def fill(x):\n    x[0] = 1\n"
    assert rewritten(functional_write, code, "x[0]") is None
    returned = rewritten(functional_write, code + "    return x\n", "x[0]")
    assert returned == "def fill(x):\n    x = x.clone()\n    x[0] = 1\n    return x\n"
