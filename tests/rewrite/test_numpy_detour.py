"""A computation that goes through NumPy under names of its own, in torch."""

from __future__ import annotations

import pytest
from rewriting import program_of, result, spot

from autograd_explain.rewrite.transforms.reconnect import reconnected

HEAD = (
    "import math\nimport numpy as np\nimport torch\n"
    "from sklearn.preprocessing import StandardScaler\n"
)
DETOURS = {
    "two statements": (
        "def f(c, m):\n"
        "    a = np.arccos(c.detach().numpy().clip(-0.9, 0.9))\n"
        "    return torch.from_numpy(np.cos(a + m)) * 2\n",
        "def f(c, m):\n    a = torch.arccos(c.clip(-0.9, 0.9))\n    return torch.cos(a + m) * 2\n",
    ),
    "an axis, and a name for the array alone": (
        "def f(c):\n"
        "    raw = c.detach().cpu().numpy()\n"
        "    e = np.exp(raw)\n"
        "    total = np.sum(e, axis=1, keepdims=True)\n"
        "    weights = torch.tensor(e / total, dtype=torch.float32)\n"
        "    return weights\n",
        "def f(c):\n"
        "    raw = c\n"
        "    e = torch.exp(raw)\n"
        "    total = torch.sum(e, axis=1, keepdims=True)\n"
        "    weights = (e / total).to(torch.float32)\n"
        "    return weights\n",
    ),
    "one name for two arrays": (
        "def f(c):\n    a = np.exp(c.detach().numpy())\n    a = a + 1\n"
        "    return torch.from_numpy(a)\n",
        "def f(c):\n    a = torch.exp(c)\n    a = a + 1\n    return a\n",
    ),
    "an option of the object": (
        "class M:\n"
        "    def __init__(self, s=8.0, m=0.3):\n"
        "        self.table = np.ones(3)\n"
        "        self.s, self.m = s, m\n"
        "    def f(self, c):\n"
        "        a = np.arccos(c.detach().numpy())\n"
        "        return torch.from_numpy(np.cos(a + self.m))\n"
        "m = M(m=0.5)\n",
        "class M:\n"
        "    def __init__(self, s=8.0, m=0.3):\n"
        "        self.table = np.ones(3)\n"
        "        self.s, self.m = s, m\n"
        "    def f(self, c):\n"
        "        a = torch.arccos(c)\n"
        "        return torch.cos(a + self.m)\n"
        "m = M(m=0.5)\n",
    ),
    "another array": (
        "def f(c):\n    table = np.ones(3)\n    a = np.exp(c.detach().numpy()) * table\n"
        "    return torch.from_numpy(a)\n",
        "def f(c):\n    table = np.ones(3)\n    a = torch.exp(c) * torch.as_tensor(table)\n"
        "    return a\n",
    ),
    "an array by other names": (
        "def f(c):\n    gain = 2 * g()\n    a = gain - c.detach().cpu().numpy()\n"
        "    return torch.from_numpy(a)\ndef g():\n    return np.ones(3)\n",
        "def f(c):\n    gain = 2 * g()\n    a = torch.as_tensor(gain, device=c.device) - c\n"
        "    return a\ndef g():\n    return np.ones(3)\n",
    ),
    "at the top of a cell": (
        "c = net(x)\n"
        "angle = np.arctan(c.detach().numpy()) * (2 / np.pi)\n"
        "loss = torch.from_numpy(angle).sum()\n",
        "",
    ),
}
REFUSED = {
    "the array is shown, too": "    a = np.exp(c.detach().numpy())\n    print(a)\n"
    "    return torch.from_numpy(a)\n",
    "the array decides": "    a = np.exp(c.detach().numpy())\n    if a.max() > 1:\n        c = 1\n"
    "    return torch.from_numpy(a)\n",
    "the array is written": "    a = np.exp(c.detach().numpy())\n    a[0] = 1.0\n"
    "    return torch.from_numpy(a)\n",
    "a function that torch lacks": "    a = np.interp(c.detach().numpy(), [0, 1], [0, 2])\n"
    "    return torch.from_numpy(a)\n",
    "what a library computes": "    a = scaler.transform(c.detach().numpy())\n"
    "    return torch.from_numpy(a)\nscaler = StandardScaler().fit(table)\n",
    "an array that the function returns": "    return np.exp(c.detach().numpy())\n"
    "def g(c):\n    return torch.from_numpy(f(c))\nshown = f(x)\n",
    "bound elsewhere": "    a = np.exp(c.detach().numpy())\n    a = a + 1\n"
    "    for a in [a]:\n        pass\n    return torch.from_numpy(a)\n",
    "a method with another meaning": "    a = c.detach().numpy().astype('int64')\n"
    "    return torch.from_numpy(a)\n",
}


@pytest.mark.parametrize("name", [n for n, (_, after) in DETOURS.items() if after])
def test_the_detour_goes_through_torch(name: str) -> None:
    before, after = DETOURS[name]
    cut = next(t for t in ("c.detach().cpu().numpy()", "c.detach().numpy()") if t in before)
    program = program_of(HEAD + before)
    assert result(reconnected(program, [spot(program, cut)])) == HEAD + after


def test_at_the_top_of_a_cell() -> None:
    program = program_of(HEAD + DETOURS["at the top of a cell"][0])
    new = result(reconnected(program, [spot(program, "c.detach().numpy()")]))
    assert new is not None
    assert "angle = torch.arctan(c) * (2 / np.pi)\nloss = angle.sum()" in new


@pytest.mark.parametrize("name", REFUSED)
def test_a_detour_that_torch_cannot_take(name: str) -> None:
    program = program_of(f"{HEAD}def f(c):\n{REFUSED[name]}")
    assert reconnected(program, [spot(program, "c.detach().numpy()")]) is None


def test_the_same_value_on_two_ways() -> None:
    """One cut taken back alone would leave half of the gradient out."""
    body = (
        "def f(c, hot):\n"
        "    a = np.cos(c.detach().numpy())\n"
        "    m = torch.from_numpy(a)\n"
        "    return hot * m + (1 - hot) * c.data\n"
    )
    program = program_of(HEAD + body)
    new = result(reconnected(program, [spot(program, "c.data")]))
    assert new == HEAD + (
        "def f(c, hot):\n    a = torch.cos(c)\n    m = a\n    return hot * m + (1 - hot) * c\n"
    )
    odd = program_of(HEAD + body.replace("np.cos(", "np.interp("))
    assert reconnected(odd, [spot(odd, "c.data")]) is None


def test_what_is_only_logged_stays() -> None:
    body = "def f(c):\n    log.append(c.detach().numpy())\n    return c.data * 2\n"
    program = program_of(HEAD + body)
    new = result(reconnected(program, [spot(program, "c.data")]))
    assert new == HEAD + body.replace("c.data", "c")


def test_a_measure_of_the_same_value_stays() -> None:
    body = (
        "def f(c):\n"
        "    spread = torch.tensor(np.ptp(c.detach().numpy()))\n"
        "    log.append(spread)\n"
        "    return c.data * 2\n"
    )
    program = program_of(HEAD + body)
    new = result(reconnected(program, [spot(program, "c.data")]))
    assert new == HEAD + body.replace("c.data", "c")


def test_another_value_of_the_same_name_stays() -> None:
    body = (
        "def f(c):\n"
        "    h = c.data * 2\n"
        "    c = g(c)\n"
        "    c = c + 1\n"
        "    return h + torch.from_numpy(np.exp(c.detach().numpy()))\n"
    )
    program = program_of(HEAD + body)
    new = result(reconnected(program, [spot(program, "c.data")]))
    assert new == HEAD + body.replace("c.data", "c")
