"""Programs that write values behind autograd's back between a forward and its backward.

Half of them put the old values back, as parameter swaps and finite differences do: their gradients
are right.  The others leave a change: theirs are wrong.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

HEAD = "import numpy as np\nimport torch\nfrom torch import nn\ntorch.manual_seed({seed})\n"


class Saved(NamedTuple):
    """Statements after which the graph of `loss` has saved the value of a name: of the tensor
    `itself`, or of another one on the same memory (a view, a result as it was)."""

    text: str
    name: str
    itself: bool


#: `{n}` is a size.
SAVED = (
    Saved(
        "p, q = (torch.randn({n}, requires_grad=True) for _ in range(2))\nloss = (p * q).sum()",
        "p",
        True,
    ),
    Saved(
        "net = nn.Linear({n}, {n})\nx = torch.randn(2, {n}, requires_grad=True)\n"
        "loss = net(x).sum()",
        "net.weight",
        False,
    ),
    Saved("w = torch.randn({n}, requires_grad=True)\nh = torch.exp(w)\nloss = h.sum()", "h", False),
    Saved(
        "w = torch.randn({n}, requires_grad=True)\nx = torch.randn({n})\nloss = (w * x).sum()",
        "x",
        True,
    ),
    Saved(
        "w = torch.randn({n}, {n}, dtype=torch.double, requires_grad=True)\n"
        "loss = (w.t() @ w).sum()",
        "w",
        False,
    ),
    Saved("b = torch.randn(4, {n}, requires_grad=True)\nloss = (b[0] * b[1]).sum()", "b", False),
)

#: `{t}` is the value's name; each puts back what it changed.
PUT_BACK = (
    "kept = {t}.data.clone()\n{t}.data.mul_(1.5)\n{t}.data.copy_(kept)",
    "kept = {t}.data\n{t}.data = torch.zeros_like(kept)\n{t}.data = kept",
    "flat = {t}.data.view(-1)\nfor i in range(len(flat)):\n    old = flat[i].item()\n"
    "    for step in (1e-3, -1e-3):\n        flat[i] = old + step\n        ({t} ** 2).sum()\n"
    "    flat[i] = old",
    "flat = {t}.data.view(-1)\nfor i in range(len(flat)):\n    flat[i] += 1e-2\n"
    "    ({t} ** 2).sum()\n    flat[i] -= 2e-2\n    ({t} ** 2).sum()\n    flat[i] += 1e-2",
    "other = torch.randn_like({t})\n{t}.data, other.data = other.data, {t}.data\n({t} * 2).sum()\n"
    "{t}.data, other.data = other.data, {t}.data",
    "alias = {t}.data\nfirst, kept = alias[0].clone(), alias.clone()\nalias[0] = 7\nalias.abs_()\n"
    "alias[1:] = kept[1:]\nalias[0] = first",
    "kept = {t}.data.clone()\ntorch.mul(kept, 2, out={t}.data)\ntorch.mul(kept, 1, out={t}.data)",
    "kept = {t}.data.clone()\nnn.init.constant_({t}.data, 3.0)\n{t}.data[...] = kept",
    "kept = {t}.data.clone()\n{t}.data.zero_()\n{t}.data += kept",
    "array = {t}.detach().numpy()\nkept = array.copy()\narray[...] = 2\n({t} * 3).sum()\n"
    "array[...] = kept\n({t} * 3).sum()",
    "mean = 0.9 * {t}.detach() + 0.1\nkept = {t}.data.clone()\nfor _ in range(3):\n"
    "    {t}.data.copy_(mean)\n    with torch.no_grad():\n        ({t} * 2).sum()\n"
    "    {t}.data.copy_(kept)",
)

#: The tensor gets its values back in other memory: only what saved the tensor itself sees them.
PUT_BACK_ELSEWHERE = (
    "kept = {t}.detach().clone()\n{t}.data = torch.ones_like(kept)\n{t}.data.copy_(kept)",
    "kept = {t}.data.clone()\n{t}.data.add_(1)\n{t}.data = kept",
    "backup = [{t}.data.clone()]\nfor q, k in zip([{t}], backup):\n    q.data.normal_()\n"
    "({t} * 2).sum()\nfor q, k in zip([{t}], backup):\n    q.data = k",
)

#: Each leaves other values; the last line is the guilty one.
CHANGED = (
    "{t}.data.mul_(1.5)",
    "{t}.data[0] = 7",
    "{t}.data.view(-1)[:1].add_(0.3)",
    "torch.mul({t}.data, 2, out={t}.data)",
    "nn.init.constant_({t}.data, 3.0)",
    "{t}.data.copy_({t}.data.flip(0) + 1e-3)",
    "{t}.data -= 0.1 * torch.ones_like({t}.data)",
    "{t}.data.clamp_(-0.01, 0.01)",
    "{t}.detach().numpy()[...] = 2",
)

CHANGED_ITSELF = (
    "{t}.data = {t}.data * 2",
    "other = {t}.data.clone()\nother += 1\n{t}.data = other",
)


class Hidden(NamedTuple):
    """A program in two cells; `guilty` is the line that left a change, if any."""

    cells: tuple[str, str]
    guilty: str | None


def program(seed: int, *, changed: bool) -> Hidden:
    """The program of a number: what is saved, what is put back, and what is changed for good."""
    rng = Random(seed)
    saved = rng.choice(SAVED)
    first = HEAD.format(seed=seed) + saved.text.format(n=rng.choice((3, 5, 8)))
    more = saved.itself and not changed
    forms = PUT_BACK + PUT_BACK_ELSEWHERE if more else PUT_BACK
    steps = [rng.choice(forms).format(t=saved.name) for _ in range(rng.randint(1, 2))]
    guilty = None
    if changed:
        form = rng.choice(CHANGED + CHANGED_ITSELF if saved.itself else CHANGED)
        write = form.format(t=saved.name)
        guilty = write.rpartition("\n")[2]
        steps = steps[: rng.randint(0, 2)]
        steps.insert(rng.randint(0, len(steps)), write)
    return Hidden((first, "\n".join([*steps, "loss.backward()"])), guilty)
