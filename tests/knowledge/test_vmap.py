"""Functions that `vmap` cannot run, and what is written instead.

A row is the function, how it is called, and the lines that the first rewrite brings in.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import added, edited, explained, play
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.model import Outcome, What
from autograd_explain.render.topic_content import cells_of

START = "# %%\nimport math\nimport torch\nfrom torch.func import grad, vmap\ntorch.manual_seed(0)\n"
PROGRAMS: dict[str, tuple[str, str, list[str]]] = {
    "branches that return": (
        "def f(x):\n    if x < -1:\n        return -x\n    elif x < 1:\n        y = x * x\n"
        "        return y / 2\n    else:\n        return x.sin()\n",
        "vmap(grad(f))(torch.linspace(-2, 2, 5))",
        ["y = x * x", "return torch.where(x < -1, -x, torch.where(x < 1, y / 2, x.sin()))"],
    ),
    "one that gives a name another value": (
        "def f(g):\n    n = g.norm()\n    s = 1.0\n    if n > 1 and not n > 9:\n"
        "        s = 1.0 / n\n    return g * s\n",
        "vmap(f)(torch.rand(4, 3))",
        ["s = torch.where((n > 1) & (~(n > 9)), 1.0 / n, s)"],
    ),
    "what stands behind it": (
        "def f(x):\n    if 0 < x.sum() < 1:\n        return x\n    y = x * 2\n    return y + 1\n",
        "vmap(f)(torch.rand(4, 3))",
        ["return torch.where((0 < x.sum()) & (x.sum() < 1), x, y + 1)"],
    ),
    "an augmented branch": (
        "def f(x):\n    l = x.sum()\n    if l > 1:\n        l += 2\n    return l\n",
        "vmap(grad(f))(torch.rand(4, 3))",
        ["l = torch.where(l > 1, l + 2, l)"],
    ),
    "max of a number": (
        "def f(x):\n    return max(0, 1 - x.sum())\n",
        "vmap(grad(f))(torch.rand(4, 3))",
        ["return torch.clamp(1 - x.sum(), min=0)"],
    ),
    "min of two": (
        "def f(a, b):\n    return min(a.sum(), b.sum())\n",
        "vmap(f)(torch.rand(4, 3), torch.rand(4, 3))",
        ["return torch.minimum(a.sum(), b.sum())"],
    ),
    "a buffer that is filled": (
        "def f(w, x):\n    out = torch.zeros(3)\n    for i in range(3):\n        y = x * i\n"
        "        out[i] = y.sum()\n    return out * w\n",
        "vmap(f)(torch.rand(4), torch.rand(4, 2))",
        ["out = w.new_zeros(3)"],
    ),
    "a tensor from outside": (
        "seen = torch.zeros(3)\ndef f(x):\n    seen.add_(x)\n    return (seen * x).sum()\n",
        "grad(f)(torch.rand(3))",
        ["new_seen = seen.add(x)", "return (new_seen * x).sum()"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    function, call, lines = PROGRAMS[name]
    cells = cells_of(f"{START}{function}# %%\n{call}\n")
    repaired = edited(cells, explained(cells).rewrites[0])
    assert added(cells, repaired) == lines
    run(repaired)


KEPT = {
    "a name that both branches use": (
        "def f(x):\n    y = x * 1\n    if x > 0:\n        y = y + 1\n        z = y * 2\n"
        "    else:\n        z = y\n    return z\n"
    ),
    "a loop": "def f(x):\n    while x > 0.5:\n        x = x / 2\n    return x\n",
}


@pytest.mark.parametrize("name", KEPT)
def test_what_would_compute_something_else_is_not_proposed(name: str) -> None:
    cells = cells_of(f"{START}{KEPT[name]}# %%\nvmap(f)(torch.rand(4))\n")
    assert explained(cells).rewrites == ()


def test_a_rewrite_inside_a_transform_is_tried() -> None:
    """What `vmap(grad(f))` goes backward through is no number that a run could note."""
    function, call, _ = PROGRAMS["an augmented branch"]
    found = play(cells_of(f"{START}{function}# %%\n{call}\n"), watched=True, verify=True).diagnosis
    assert found is not None
    assert found.rewrites[0].outcome is Outcome.RUNS


def function_with_context(*forward: str) -> str:
    body = "".join(f"        {line}\n" for line in forward)
    function = (
        "class Gate(torch.autograd.Function):\n    @staticmethod\n"
        f"    def forward(ctx, x, scale, *rest):\n{body}\n"
        "    @staticmethod\n    def backward(ctx, g):\n"
        "        return g * ctx.saved_tensors[0], None\n"
        "def f(x):\n    return Gate.apply(x, 2.0).sum()\n"
    )
    return f"{function}# %%\nvmap(grad(f))(torch.rand(4, 3))\n"


def test_what_a_function_keeps_is_set_apart() -> None:
    """Inputs and outputs are handed to it, what lies between is computed once more."""
    forward = ("soft = (x * scale).sigmoid()", "ctx.n = len(x)", "y = soft.round()")
    written = function_with_context(*forward, "ctx.save_for_backward(soft, x, y)", "return y")
    diagnosis = explained(cells := cells_of(START + written))
    assert diagnosis.finding.tensors[0].names == ("Gate",)
    repaired = edited(cells, diagnosis.rewrites[0])
    assert [line for line in added(cells, repaired) if line] == [
        "generate_vmap_rule = True",
        "def forward(x, scale, *rest):",
        "def setup_context(ctx, inputs, output):",
        "x, scale, *_ = inputs",
        "y = output",
    ]
    run(repaired)


@pytest.mark.parametrize(
    "forward",
    [
        ("m = torch.rand_like(x)", "ctx.save_for_backward(m)", "return x * m"),
        ("m = x > 0", "ctx.m = m", "ctx.save_for_backward(x)", "return x * m"),
        ("ctx.save_for_backward(x)", "if scale:", "    return x", "return -x"),
        ("m = x.exp()", "m[0] = 0", "ctx.save_for_backward(m)", "return x * m"),
        ("x = x.exp()", "ctx.save_for_backward(x)", "return x * 2"),
    ],
    ids=("random", "a tensor as attribute", "returns early", "written", "another input"),
)
def test_what_cannot_be_computed_once_more_stays(forward: tuple[str, ...]) -> None:
    assert explained(cells_of(START + function_with_context(*forward))).rewrites == ()


KEEPS = """class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.seen, self.kept = torch.nn.Linear(2, 2), [], None
    def forward(self, x):
        out = self.net(x)
        @
        return out
field = Field()
# %%
made = vmap(jacrev(field))(torch.rand(4, 2))
"""


@pytest.mark.parametrize(
    ("keeps", "read", "culprit", "kept"),
    [
        ("self.kept = out.sin()", "field.kept.mean()", "field.kept", "self.kept = out.sin()"),
        ("self.seen.append(out)", "torch.stack(field.seen)", "field.seen[0]", None),
        ("self.seen += [out]; self.kept = x", "field.seen[0] + field.kept", "", ""),
    ],
)
def test_what_left_the_transform_is_named(
    keeps: str, read: str, culprit: str, kept: str | None
) -> None:
    cells = cells_of(START.replace("vmap", "jacrev, vmap") + KEEPS.replace("@", keeps) + read)
    finding = explained(cells).finding
    place = finding.place(What.CAUSE)
    assert finding.cause == "tensor_left_transform"
    assert [t.names[0] for t in finding.tensors] == ([culprit] if culprit else [])
    assert place is not None and place.source == (keeps if kept is None else kept or read)


OLD = """import torch
class Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0) ** 3
    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return 3 * grad * x.clamp(min=0) ** 2
"""


@pytest.mark.parametrize(
    ("taken", "instead"),
    [
        ("hessian(energy)(x)", "hessian(energy, x, create_graph=True)"),
        ("jacrev(energy)(x)", "jacobian(energy, x, create_graph=True)"),
        ("grad(energy)(x)", "jacobian(energy, x, create_graph=True)"),
    ],
)
def test_a_function_of_a_package_needs_no_transform(
    tmp_path: Path, taken: str, instead: str
) -> None:
    start = "import torch\nfrom steplib import Step\nx = torch.tensor([0.5, -1.0])\n"
    start += "def energy(p):\n    return Step.apply(p * p).sum()\n"
    with installed(tmp_path, "steplib", OLD):
        cells = (start, f"out = torch.func.{taken}")
        repaired = edited(cells, explained(cells).rewrites[0])
        assert repaired[1] == f"out = torch.autograd.functional.{instead}"
        run(repaired)


def test_a_function_of_the_users_has_no_rule_for_forward_mode() -> None:
    """`hessian` differentiates forward, which a `setup_context` alone does not allow."""
    energy = "def energy(p):\n    return Step.apply(p * p).sum()\n"
    cells = (OLD + energy, "h = torch.func.hessian(energy)(torch.tensor([0.5, -1.0]))")
    repaired = edited(cells, explained(cells).rewrites[0])
    assert "torch.autograd.functional.hessian(energy, " in repaired[1]
    run(repaired)


SAMPLES = """import torch
from steplib import Step
from torch.func import grad, vjp, vmap
xs, k = torch.tensor([[0.5, -1.0], [2.0, 1.0]]), torch.tensor(3.0)
def energy(p):
    return Step.apply(p * p).sum()
def scaled(c, p):
    return c["k"] * energy(p) if isinstance(c, dict) else c * energy(p)
def force(p):
    return -grad(energy)(p)
def both(p):
    return p, grad(energy)(p)
"""
JACOBIAN = "torch.autograd.functional.jacobian"


@pytest.mark.parametrize(
    ("taken", "lines"),
    [
        (
            "out = vmap(grad(energy))(xs)",
            [f"out = torch.stack([{JACOBIAN}(energy, p, create_graph=True) for p in xs])"],
        ),
        (
            "def forces(frames):\n    one = grad(lambda x: energy(x))\n"
            "    return -vmap(one)(frames)\n"
            "out = forces(xs)",
            [
                f"one = lambda x: {JACOBIAN}(lambda x: energy(x), x, create_graph=True)",
                "return -torch.stack([one(x) for x in frames])",
            ],
        ),
        (
            "out = vmap(grad(scaled, argnums=1), in_dims=(None, 0))(k, xs)",
            [
                f"out = torch.stack([{JACOBIAN}(lambda p: scaled(k, p), p, create_graph=True) "
                "for p in xs])"
            ],
        ),
        (
            "out = vmap(force)(xs)",
            [
                f"return -{JACOBIAN}(energy, p, create_graph=True)",
                "out = torch.stack([force(p) for p in xs])",
            ],
        ),
    ],
    ids=("directly", "by a name", "beside what all share", "in a function"),
)
def test_one_sample_after_another_needs_no_transform(
    tmp_path: Path, taken: str, lines: list[str]
) -> None:
    with installed(tmp_path, "steplib", OLD):
        cells = (SAMPLES, taken)
        repaired = edited(cells, explained(cells).rewrites[0])
        assert added(cells, repaired) == lines
        run(repaired)


@pytest.mark.parametrize(
    "taken",
    [
        'grad(scaled)({"k": k}, xs)',
        'vmap(grad(scaled), in_dims=(None, 0))({"k": k}, xs)',
        "vmap(grad(energy), in_dims=1)(xs)",
        "vmap(both)(xs)",
        "vmap(vmap(grad(energy)))(xs[None])",
        "vjp(energy, xs)",
        "vmap(grad(energy), out_dims=1)(xs)",
    ],
)
def test_a_transform_stays_where_backward_gives_something_else(tmp_path: Path, taken: str) -> None:
    with installed(tmp_path, "steplib", OLD):
        assert explained((SAMPLES, taken)).rewrites == ()


DERIVATIVES = """
net = torch.nn.Sequential(torch.nn.Linear(1, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
def residual(t):
    u = net(t)
    @
    return (v + u).sum()
loss = vmap(residual)(torch.linspace(0, 1, 5)[:, None]).square().sum()
loss.backward()
print(torch.autograd.grad(net(torch.ones(1)).square(), net[0].bias)[0])
"""
FIRST = "du = torch.autograd.grad(u, t, create_graph=True)[0]"


@pytest.mark.parametrize(
    ("taken", "lines"),
    [
        (
            FIRST + "; v, = torch.autograd.grad(du, [t], create_graph=True)",
            ["return u.sum()", "return du.sum()", "du = grad(u_of_t)(t)"],
        ),
        (
            "v = torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]",
            ["v = grad(u_of_t)(t)"],
        ),
        ("v = torch.autograd.grad(net(2 * t), t)[0]", ["v = grad(lambda t: net(2 * t).sum())(t)"]),
        ("u = u * 2; v = torch.autograd.grad(u, t)[0]", []),  # of two values by one name
        ("v = torch.autograd.grad(u, net[0].bias)[0].sum()", []),  # no argument
    ],
)
def test_a_derivative_in_a_mapped_function(taken: str, lines: list[str]) -> None:
    cells = cells_of(START + DERIVATIVES.replace("@", taken.replace("; ", "\n    ")))
    explanation = explained(cells)
    assert explanation.finding.cause == "backward_in_transform"
    assert bool(explanation.rewrites) is bool(lines)
    if lines:
        repaired = edited(cells, explanation.rewrites[0])
        assert all(line in repaired[0] for line in lines)
        assert "print(torch.autograd.grad(" in repaired[0]
        run(repaired)


def test_a_value_detached_in_a_transform_is_no_matter_of_the_transform() -> None:
    code = "def f(t):\n    u = t.detach().sin()\n    return torch.autograd.grad(u, t)[0]\n"
    finding = explained(cells_of(START + code + "grad(f)(torch.tensor(1.0))")).finding
    assert finding.cause == "graph_cut"
