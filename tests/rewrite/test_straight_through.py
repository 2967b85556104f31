"""Losses of a codebook that were taken of the straight-through value."""

from __future__ import annotations

import pytest
from rewriting import program_of, result, spot

from autograd_explain.rewrite.transforms.straight_through import codes_in_loss
from autograd_explain.rewrite.transforms.uncut import apply_patches, without_cut

CUT = "(q - z).detach()"
#: A program, and each line that changes.
PROGRAMS = {
    "a name of its own": (
        "def f(z):\n    q = book(z)\n    s = z + (q - z).detach()\n"
        "    return s, mse(s, z.detach()) + mse(z, s.detach())\n",
        {"mse(s, z.detach())": "mse(q, z.detach())"},
    ),
    "the name of the codes": (
        "def f(z):\n    q = book(z)\n    q = z + (q - z).detach()\n"
        "    loss = (q - z.detach()).pow(2).mean()\n    return q, loss\n",
        {
            "    q = z +": "    q_codes = q\n    q = z +",
            "(q - z.detach()).pow": "(q_codes - z.detach()).pow",
        },
    ),
    "the caller compares": (
        "def f(z):\n    q = book(z)\n    return z + (q - z).detach()\n"
        "for x in data:\n    h = net(x)\n    s = f(h)\n    loss = g(s) + mse(h.detach(), s)\n",
        {
            "(q - z).detach()\n": "(q - z).detach(), q\n",
            "    s = f(h)": "    s, s_q = f(h)",
            "mse(h.detach(), s)": "mse(h.detach(), s_q)",
        },
    ),
    "a module among others": (
        "class VQ(nn.Module):\n    def forward(self, z):\n        q = self.book(z)\n"
        "        s = z + (q - z).detach()\n        return s, q.argmax()\n"
        "enc, vq = nn.Linear(2, 2), VQ()\nz = enc(x)\ns, k = vq(z)\nloss = mse(s, z.detach())\n",
        {
            "return s, q.argmax()": "return s, q.argmax(), q",
            "s, k = vq(z)": "s, k, s_q = vq(z)",
            "mse(s, z.detach())": "mse(s_q, z.detach())",
        },
    ),
}
REFUSED = {
    "nothing is compared": "def f(z):\n    q = z.sign()\n    s = z + (q - z).detach()\n"
    "    return s\n",
    "with another target": "def f(z):\n    q = b(z)\n    s = z + (q - z).detach()\n"
    "    return mse(s, x.detach())\n",
    "the target has its graph": "def f(z):\n    q = b(z)\n    s = z + (q - z).detach()\n"
    "    return mse(s, z)\n",
    "a caller keeps it otherwise": "def f(z):\n    q = b(z)\n    return z + (q - z).detach()\n"
    "h = net(x)\ns = f(h)\nloss = mse(s, h.detach())\nmaps.append(f(h))\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_loss_reads_the_codes(name: str) -> None:
    before, changes = PROGRAMS[name]
    program, after = program_of(before), before
    for old, new in changes.items():
        assert after.count(old) == 1
        after = after.replace(old, new)
    assert result(codes_in_loss(program, spot(program, CUT))) == after


@pytest.mark.parametrize("name", REFUSED)
def test_other_uses_stay(name: str) -> None:
    program = program_of(REFUSED[name])
    assert codes_in_loss(program, spot(program, CUT)) is None


def test_without_a_loss_both_get_the_gradient() -> None:
    program = program_of("s = z + (q - z).detach()\n")
    found = apply_patches(without_cut(program, spot(program, CUT)))
    assert result(found) == "s = q + (z - z.detach())\n"
