"""Values that a loss depends on and its gradient does not know, though other terms reach the same
parameters; and stop-gradients that are meant, which raise no alarm.

A row is the body of a training loop over the models of `HEAD`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from knowledge.played import added, claims, edited
from notebook import PATIENCE, Notebook, captured, cells_of, installed, shell_with_extension
from training_programs import program

from autograd_explain.intercept import guard
from autograd_explain.model import Diagnosis, Kind, Outcome, What
from autograd_explain.record import watch

HEAD = """# %%
import copy, math
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
np.random.seed(0)
enc, head = nn.Linear(3, 4), nn.Linear(4, 1)
aux = nn.Linear(4, 4)
scale, weights = nn.Parameter(torch.tensor(0.5)), nn.Parameter(torch.zeros(2))
held = [*enc.parameters(), *head.parameters(), *aux.parameters(), scale, weights]
opt = torch.optim.SGD(held, lr=0.01)
x, y = torch.randn(8, 3), torch.randn(8, 1)
history, total, best = [], 0.0, 1e9
# %%
"""
LOOP = "for step in range(4):\n    opt.zero_grad()\n"
END = "\n    loss.backward()\n    opt.step()\n"


@dataclass(frozen=True)
class Told:
    """What is said of a notebook that goes wrong silently, torch's warnings left out."""

    diagnosis: Diagnosis | None
    output: str


def told(body: str, before: str = "", after: str = "") -> Told:
    text = HEAD + before + LOOP + textwrap.indent(body, "    ") + END
    return played(cells_of(text + textwrap.indent(after, "    ")))


def played(cells: Sequence[str]) -> Told:
    with shell_with_extension() as shell, claims() as seen, captured() as output:
        shell.run_line_magic("autograd_check", f"on --budget {PATIENCE}")
        for cell in cells:
            assert shell.run_cell(cell, store_history=True).success, output.getvalue()
        assert guard.report() == ""
    silent = [e.diagnosis for e in seen.shown if e.diagnosis.kind is Kind.SILENT]
    return Told(silent[0] if silent else None, output.getvalue())


TERM = "loss = F.mse_loss(head(h), y) + aux(h).pow(2).mean()"
#: The body, the expression that cuts, and the line that the first rewrite brings in.
FAULTS = {
    "item of a term": (
        f"h = enc(x).tanh()\npenalty = h.abs().mean().item()\n{TERM} + 0.1 * penalty",
        "h.abs().mean().item()",
        "penalty = h.abs().mean()",
    ),
    "item in the sum": (
        f"h = enc(x).tanh()\n{TERM} + h.abs().mean().item()",
        "h.abs().mean().item()",
        f"{TERM} + h.abs().mean()",
    ),
    "float of a term": (
        f"h = enc(x).tanh()\npenalty = float(h.abs().mean())\n{TERM} + penalty",
        "float(h.abs().mean())",
        "penalty = h.abs().mean()",
    ),
    "a function of math": (
        f"h = enc(x).tanh()\npenalty = math.exp(h.mean())\n{TERM} + penalty",
        "math.exp(h.mean())",
        "penalty = torch.exp(h.mean())",
    ),
    "a copy of features": (
        f"h = enc(x).tanh()\ng = torch.tensor(h)\n{TERM} + aux(g).mean()",
        "torch.tensor(h)",
        "g = h",
    ),
    "a list of features": (
        f"h = enc(x).tanh()\ng = torch.tensor(h.tolist())\n{TERM} + aux(g).mean()",
        "h.tolist()",
        "g = h",
    ),
    "the data of features": (
        "g = enc(x).data\nloss = F.mse_loss(head(enc(x).tanh()), y) + head(g).mean()",
        "enc(x).data",
        "g = enc(x)",
    ),
    "features through NumPy": (
        "g = torch.from_numpy(np.tanh(enc(x).detach().numpy()))\n"
        "loss = F.mse_loss(head(enc(x).tanh()), y) + head(g).mean()",
        "enc(x).detach().numpy()",
        "g = torch.tanh(enc(x))",
    ),
    "a parameter's number": (
        "h = enc(x).tanh()\nloss = F.mse_loss(head(h) * scale.item(), y) + scale.pow(2)",
        "scale.item()",
        "loss = F.mse_loss(head(h) * scale, y) + scale.pow(2)",
    ),
    "an element's number": (
        "h = enc(x).tanh()\n"
        "loss = F.mse_loss(head(h) * math.exp(-weights[0].item()), y) + weights.sum()",
        "weights[0].item()",
        "loss = F.mse_loss(head(h) * torch.exp(-weights[0]), y) + weights.sum()",
    ),
    "a decay by numbers": (
        "h = enc(x).tanh()\ndecay = sum(p.pow(2).sum().item() for p in held)\n"
        "loss = F.mse_loss(head(h), y) + 0.01 * decay",
        "p.pow(2).sum().item()",
        "decay = sum(p.pow(2).sum() for p in held)",
    ),
    "one of two in a line": (
        "h = enc(x).tanh()\nkl, rec = h.abs().mean(), F.mse_loss(head(h), y)\n"
        "log = {'rec': rec.item(), 'kl': kl.item()}\nloss = rec + log['kl']",
        "kl.item()",
        "log = {'rec': rec.item(), 'kl': kl}",
    ),
    "terms in a list": (
        "terms = []\nh = enc(x).tanh()\nterms.append(h.abs().mean().item())\n"
        "loss = F.mse_loss(head(h), y) + sum(terms)",
        "h.abs().mean().item()",
        "terms.append(h.abs().mean())",
    ),
    "terms in a list, made a tensor": (
        "terms = []\nh = enc(x).tanh()\nfor row in h:\n    terms.append(row.abs().mean().item())\n"
        "loss = F.mse_loss(head(h), y) + torch.tensor(terms).mean()",
        "row.abs().mean().item()",
        "terms.append(row.abs().mean())\nloss = F.mse_loss(head(h), y) + torch.stack(terms).mean()",
    ),
    "a detached term": (
        f"h = enc(x).tanh()\ng = h.detach()\n{TERM} + 0.1 * g.abs().mean()",
        "h.detach()",
        "g = h",
    ),
    "a small detached decay": (
        "h = enc(x).tanh()\nloss = F.mse_loss(head(h), y)\nfor p in held:\n"
        "    loss = loss + 1e-4 * p.detach().pow(2).sum()",
        "p.detach()",
        "loss = loss + 1e-4 * p.pow(2).sum()",
    ),
    "data of shared features": (
        f"h = enc(x).tanh()\ngap = (h.data - 1).abs().mean()\n{TERM} + gap",
        "h.data",
        "gap = (h - 1).abs().mean()",
    ),
    "detached terms in a list": (
        "terms = []\nh = enc(x).tanh()\nfor row in h:\n    terms.append(row.norm().detach())\n"
        "loss = F.mse_loss(head(h), y)\nloss += torch.stack(terms).sum()",
        "row.norm().detach()",
        "terms.append(row.norm())",
    ),
    "shared features through NumPy": (
        f"h = enc(x).tanh()\ng = torch.from_numpy(h.detach().numpy())\n{TERM} + g.abs().mean()",
        "h.detach().numpy()",
        "g = h",
    ),
    "a number kept in a dict": (
        f"h = enc(x).tanh()\nparts = {{}}\nparts['l1'] = h.abs().mean().item()\n"
        f"{TERM} + sum(parts.values())",
        "h.abs().mean().item()",
        "parts['l1'] = h.abs().mean()",
    ),
}

TAPS = """kept = {}
teacher = nn.Linear(3, 4).requires_grad_(False)
def tap(name):
    def hook(module, given, out):
        kept[name] = out.detach()
    return hook
enc.register_forward_hook(tap("student"))
teacher.register_forward_hook(tap("teacher"))
# %%
"""
SILENCED = """@torch.no_grad()
def gap(a, b):
    return F.mse_loss(teacher(a), teacher(b))
teacher = nn.Linear(1, 4).requires_grad_(False)
# %%
"""
VAE = """from torch.distributions import Independent, Normal, kl_divergence
class Latent(nn.Module):
    def forward(self, h):
        q = Independent(Normal(h, 1.0), 1)
        return q, q.sample()
latent = Latent()
# %%
"""
PRIOR = "q, z = latent(enc(x))\np = Independent(Normal(torch.zeros(8, 4), 1.0), 1)\n"
TILING = """out = rows.new_zeros(8, 4)
for k in range(8):
    {}
return out
"""
TILED = f"""target = torch.randn(8, 4)
def tiled(rows):
    with torch.no_grad():
{textwrap.indent(TILING, " " * 8)}# %%
"""
INNER = (
    "h = enc(x).tanh()\ninner = F.mse_loss(head(h), y)\n"
    "g, = torch.autograd.grad(inner, head.weight, create_graph=True)\n{}"
    "fast = head.weight - 0.1 * g{}\nloss = F.mse_loss(F.linear(h, fast, head.bias), y)"
)
SCORES = "with torch.no_grad():\n    {}\nloss = head(enc(y * x)).mean() - score.mean()"
#: What stands before the loop, its body, the line to blame, what the first rewrite brings in.
STOPS = {
    "an inner step whose graph was asked for": (
        "",
        INNER.format("", ".detach()"),
        "fast = head.weight - 0.1 * g.detach()",
        ["fast = head.weight - 0.1 * g"],
    ),
    "a hook of teacher and student": (
        TAPS,
        "with torch.no_grad():\n    teacher(x)\nloss = F.mse_loss(head(enc(x)), y)\n"
        "loss = loss + F.mse_loss(kept['student'], kept['teacher'])",
        "kept[name] = out.detach()",
        ["        kept[name] = out"],
    ),
    "the same, with a layer between": (
        TAPS,
        "with torch.no_grad():\n    teacher(x)\nloss = F.mse_loss(head(enc(x)), y)\n"
        "loss = loss + F.mse_loss(aux(kept['student']), kept['teacher'])",
        "kept[name] = out.detach()",
        ["        kept[name] = out"],
    ),
    "what was written into slices": (
        TILED.format("out[k:k + 1] = rows[k]"),
        "h = enc(x).tanh()\nloss = F.mse_loss(tiled(h), target) + h.abs().mean()",
        "with torch.no_grad():",
        TILING.format("out[k:k + 1] = rows[k]").splitlines(),
    ),
    "what was written through views": (
        TILED.format("out.narrow(0, k, 1).copy_(rows[k])"),
        "h = enc(x).tanh()\nloss = F.mse_loss(tiled(h), target) + h.abs().mean()",
        "with torch.no_grad():",
        TILING.format("out.narrow(0, k, 1).copy_(rows[k])").splitlines(),
    ),
    "a loss under a decorator": (
        SILENCED,
        "out = head(enc(x))\nloss = F.mse_loss(out, y) + gap(out, y)",
        "@torch.no_grad()",
        [],
    ),
    "densities beside their weights": (
        "@torch.no_grad()\ndef rolled(x):\n    return F.log_softmax(enc(x), 1)[:, 0]\n",
        "v = aux(enc(x).tanh())[:, 0]\nweight = (y[:, 0] - v).detach()\n"
        "loss = (v - y[:, 0]).pow(2).mean() - (weight * rolled(x)).mean()",
        "@torch.no_grad()",
        [],
    ),
    "scores that are subtracted": (
        "",
        SCORES.format("score = head(enc(x))"),
        "with torch.no_grad():",
        ["score = head(enc(x))"],
    ),
    "a sample": (
        VAE,
        f"{PRIOR}loss = F.mse_loss(head(z), y) + kl_divergence(q, p).mean()",
        "return q, q.sample()",
        ["        return q, q.rsample()"],
    ),
    "a sample whose density is weighed alike": (
        VAE,
        f"{PRIOR}loss = F.mse_loss(head(z), y) + (q.log_prob(z) - p.log_prob(z)).mean()",
        "return q, q.sample()",
        ["        return q, q.rsample()"],
    ),
}


@pytest.mark.one_in(12)
@pytest.mark.parametrize("name", STOPS)
def test_a_written_stop_is_named_where_it_can_be_no_target(name: str) -> None:
    before, body, line, new = STOPS[name]
    found = told(body, before)
    assert found.diagnosis is not None, found.output
    finding, rewrites = found.diagnosis.finding, found.diagnosis.rewrites
    assert finding.cause == "silent_cut" and finding.variant.startswith("partial"), found.output
    place = finding.place(What.CAUSE)
    assert place is not None and place.source.strip() == line
    assert finding.facts["parameter"].startswith(("enc.", "head.", "held"))
    cells = cells_of(HEAD + before + LOOP + textwrap.indent(body, "    ") + END)
    assert added(cells, edited(cells, rewrites[0])) == [n.strip() for n in new], found.output


def test_what_a_library_detaches_is_told_at_its_call() -> None:
    call = "torch.utils.checkpoint.detach_variable((h,))"
    found = told(f"h = enc(x).tanh()\nz, = {call}\nloss = F.mse_loss(head(z), y)")
    assert found.diagnosis is not None, found.output
    finding = found.diagnosis.finding
    assert (finding.cause, finding.variant) == ("silent_cut", "library"), found.output
    assert finding.facts["operation"] == call and finding.facts["operand"] == ""
    assert "z" in finding.tensors[0].names


LIBRARY = """import torch
@torch.no_grad()
def tiled(rows, shift):
    out = rows.new_zeros(8, 4)
    for k in range(8):
        out.narrow(0, k, 1).copy_(rows[k])
    return out + shift
"""


def test_what_a_library_computes_without_recording_is_called_as_it_was_written(
    tmp_path: Path,
) -> None:
    body = "h = enc(x).tanh()\nloss = F.mse_loss(somelib.tiled(h, 0.5), target) + h.abs().mean()"
    before = "import somelib\ntarget = torch.randn(8, 4)\n# %%\n"
    with installed(tmp_path, "somelib", LIBRARY):
        found = told(body, before)
        assert found.diagnosis is not None, found.output
        finding, (first, *_) = found.diagnosis.finding, found.diagnosis.rewrites
        assert (finding.cause, finding.variant) == ("silent_cut", "partial"), found.output
        assert finding.facts["operand"] == "h" and first.outcome is Outcome.RUNS
        cells = cells_of(HEAD + before + LOOP + textwrap.indent(body, "    ") + END)
        (line,) = added(cells, edited(cells, first))
        assert "somelib.tiled.__wrapped__(h, 0.5)" in line


NUMBERS = """import torch
def blurred(x, sigma):
    if isinstance(sigma, tuple):
        sigma = torch.tensor([sigma])
    return x * sigma.mean()
def dimmed(x, factor):
    return x * float(factor)
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("call", "operand"),
    [
        ("blurred(head(enc(x)), (1, log_sigma.exp()))", "log_sigma"),
        ("dimmed(head(enc(x)), gain)", "gain"),
    ],
)
def test_what_a_library_takes_the_numbers_of_is_told_by_the_parameter(
    call: str, operand: str, tmp_path: Path
) -> None:
    """It is neither the package nor what else the call is given."""
    before = f"import numberlib\n{operand} = nn.Parameter(torch.tensor(0.5))\n"
    before += f"opt = torch.optim.SGD([{operand}, *held], lr=0.1)\n# %%\n"
    with installed(tmp_path, "numberlib", NUMBERS):
        found = told(f"h = enc(x)\nloss = F.mse_loss(numberlib.{call}, y)", before)
        assert found.diagnosis is not None, found.output
        finding = found.diagnosis.finding
        assert (finding.cause, finding.facts["operand"]) == ("silent_cut", operand), found.output
        place = finding.place(What.CAUSE)
        assert place is not None and call in place.source


SOLVE = """class Solve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, rule):
        ctx.save_for_backward(x)
        ctx.rule = rule
        return rule(x)
    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            x = ctx.saved_tensors[0].detach().requires_grad_()
            return torch.autograd.grad(ctx.rule(x), x, grad)[0], None
def solved(x, rule):
    return Solve.apply(x, rule)
"""


def test_what_a_custom_function_reads_is_told_at_its_call() -> None:
    found = told("h = solved(enc(x), lambda z: z * scale)\nloss = F.mse_loss(head(h), y)", SOLVE)
    assert found.diagnosis is not None, found.output
    finding = found.diagnosis.finding
    assert (finding.cause, finding.variant) == ("silent_cut", "function"), found.output
    assert finding.facts["parameter"] == "scale" and finding.facts["operand"] == "z * scale"
    cause, read = finding.place(What.CAUSE), finding.place(What.DETACHED)
    assert cause is not None and cause.source.strip() == "return Solve.apply(x, rule)"
    assert read is not None and "z * scale" in read.source


def test_a_sample_is_named_that_loses_its_parameters() -> None:
    """Nothing else reaches the encoder: that is a line worth a look until a run shows the loss to
    depend on the sample."""
    found = told("_, z = latent(enc(x))\nloss = F.mse_loss(head(z), y)", VAE)
    assert found.diagnosis is not None, found.output
    finding = found.diagnosis.finding
    assert (finding.cause, finding.variant) == ("silent_cut", "sample"), found.output
    assert found.diagnosis.rewrites[0].fix == "rsample"


#: They cut off all parameters, some of which no other term reaches: that is what is told.
OF_ALL = {"a decay by numbers": "number", "a small detached decay": "detach"}


@pytest.mark.one_in(12)
@pytest.mark.parametrize("name", FAULTS)
def test_a_partial_cut_is_named(name: str) -> None:
    body, operation, line = FAULTS[name]
    found = told(body)
    assert found.diagnosis is not None, found.output
    finding, rewrites = found.diagnosis.finding, found.diagnosis.rewrites
    variant = OF_ALL.get(name, "partial")
    assert (finding.cause, finding.variant) == ("silent_cut", variant), found.output
    assert found.output.count("silent_cut ·") == 1, found.output
    assert finding.facts["operation"] == operation
    place = finding.place(What.CAUSE)
    assert place is not None and operation in place.source
    lost = ("aux",) if name in OF_ALL else ("enc.", "scale", "held", "weights")
    assert finding.facts["parameter"].startswith(lost), finding.facts
    cells = cells_of(HEAD + LOOP + textwrap.indent(body, "    ") + END)
    assert added(cells, edited(cells, rewrites[0])) == line.split("\n"), found.output
    assert rewrites[0].outcome is Outcome.RUNS


IN_A_FUNCTION = {
    "goes into the loss": ("k = math.exp(scale)\n    return head(enc(x)) * k", True),
    "is only kept": ("history.append(math.exp(scale))\n    return head(enc(x))", False),
    "weighs by a norm": ("k = aux.weight.norm().item()\n    return head(enc(x)) / (1 + k)", False),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", IN_A_FUNCTION)
def test_a_number_in_a_function_counts_where_the_loss_depends_on_it(name: str) -> None:
    """No parameter behind it ever gets a gradient; the text does not tell where it goes."""
    body, lost = IN_A_FUNCTION[name]
    found = told("loss = F.mse_loss(out(x), y)", f"def out(x):\n    {body}\n# %%\n")
    assert (found.diagnosis is not None and found.diagnosis.kind is Kind.SILENT) is lost
    if found.diagnosis is not None and lost:
        finding, rewrite = found.diagnosis.finding, found.diagnosis.rewrites[0]
        assert (finding.cause, finding.facts["parameter"]) == ("silent_cut", "scale")
        assert rewrite.reason.key == "reached", found.output


#: A loop's body, and the line that the rewrite brings in.
DERIVATIVES = {
    "gradient penalty": (
        "z = (0.5 * x + 0.5 * torch.randn(8, 3)).requires_grad_(True)\n"
        "g = torch.autograd.grad(head(enc(z).tanh()).sum(), z)[0]\n"
        "loss = F.mse_loss(head(enc(x).tanh()), y) + 1e-3 * (g.norm(2, dim=1) - 1).pow(2).mean()",
        "g = torch.autograd.grad(head(enc(z).tanh()).sum(), z, create_graph=True)[0]",
    ),
    "residual beside data": (
        "t = torch.rand(8, 3, requires_grad=True)\nu = head(enc(t).tanh())\n"
        "u_t, = torch.autograd.grad(u.sum(), t, retain_graph=True, create_graph=False)\n"
        "loss = (u_t.sum(1) + t[:, 0] * u[:, 0]).pow(2).mean() + F.mse_loss(head(enc(x)), y)",
        "u_t, = torch.autograd.grad(u.sum(), t, retain_graph=True, create_graph=True)",
    ),
    "a Hessian at each of many points": (
        "net = lambda p: head(enc(p).tanh()).squeeze()\n"
        "h = [torch.autograd.functional.hessian(net, p).trace() for p in torch.rand(20, 3)]\n"
        "loss = torch.stack(h).pow(2).mean() + F.mse_loss(head(enc(x)), y)",
        "h = [torch.autograd.functional.hessian(net, p, create_graph=True).trace() "
        "for p in torch.rand(20, 3)]",
    ),
}
FORCES = """class Forces(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        self.form = Form((1, 2))
    def forward(self, x):
        x = x.detach().requires_grad_(True)
        e = self.net(x).sum()
        f, = torch.autograd.grad(e, x, retain_graph=True, create_graph=self.training)
        return e, f
def error(model):
    return model.eval()(x)[1].square().mean().item()
# %%
model = Forces()
errors = [error(model)]
for _ in range(3):
    e, f = model(x)
    loss = (e - 1).square() + (f - 1).square().sum()
    loss.backward()
    model.zero_grad()
    errors.append(error(model))
"""


def test_a_derivative_that_an_evaluation_takes_first() -> None:
    """The same line gives values that no loss reads before the round and after it; a tuple of the
    program's own has no length."""
    form = "class Form(tuple):\n    def __len__(self):\n        raise NotImplementedError\n"
    found = played(cells_of(HEAD + form + FORCES))
    assert found.diagnosis is not None, found.output
    finding = found.diagnosis.finding
    assert (finding.cause, finding.variant) == ("silent_cut", "derivative"), found.output


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", DERIVATIVES)
def test_a_derivative_without_a_graph_is_named(name: str) -> None:
    body, line = DERIVATIVES[name]
    after = "other = aux(torch.ones(1, 4)).sum()\nother.backward()"
    found = told(body, after=after)
    assert found.diagnosis is not None, found.output
    finding, rewrites = found.diagnosis.finding, found.diagnosis.rewrites
    assert (finding.cause, finding.variant) == ("silent_cut", "derivative"), found.output
    kept = line.partition(" = ")[0].partition(",")[0]
    assert " = " not in line or kept in finding.tensors[0].names
    failed = finding.place(What.FAILED)
    assert failed is not None and failed.source == "loss.backward()"
    text = HEAD + LOOP + textwrap.indent(body, "    ") + END + textwrap.indent(after, "    ")
    cells = cells_of(text)
    assert added(cells, edited(cells, rewrites[0])) == [line], found.output


def test_in_the_model_of_another_cell() -> None:
    cells = cells_of(
        HEAD + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.enc, self.head = nn.Linear(3, 4), nn.Linear(4, 1)\n"
        "    def loss(self, x, y):\n        h = torch.tanh(self.enc(x))\n"
        "        penalty = h.abs().mean()\n"
        "        return F.mse_loss(self.head(h), y) + penalty.item()\n"
        "net = Net()\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n# %%\n"
        "for _ in range(3):\n    opt.zero_grad()\n    loss = net.loss(x, y)\n"
        "    loss.backward()\n    opt.step()\n"
    )
    found = played(cells)
    assert found.diagnosis is not None, found.output
    assert found.diagnosis.finding.facts["operation"] == "penalty.item()"
    assert found.diagnosis.finding.facts["parameter"] == "net.enc.bias"


H = "h = enc(x).tanh()\n"
LOSS = "loss = F.mse_loss(head(h), y)"
TARGET = "target = copy.deepcopy(enc)\n"
FLIP = (
    "class Flip(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, t):\n"
    "        return t.view_as(t)\n    @staticmethod\n    def backward(ctx, g):\n        return -g\n"
)
BOUND = (
    "class Bound(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, t, limit):\n"
    "        ctx.save_for_backward(t, limit)\n        return t.clamp(max=limit.item())\n"
    "    @staticmethod\n    def backward(ctx, g):\n        t, limit = ctx.saved_tensors\n"
    "        return g * (t <= limit), (g * (t > limit)).sum()\n"
)
CRITIC = "critic = nn.Linear(3, 1)\nopt.add_param_group({'params': critic.parameters()})\n"
REFERENCE = "with torch.no_grad():\n    a, b = enc(x), enc(x.flip(1))\n"
LATER = "later = enc(x.roll(1, 0)).max(1)[0]"
#: What stops gradients on purpose: before the loop, in it before backward, in it after the step.
MEANT = {
    "target network": (TARGET, "with torch.no_grad():\n    q = target(x)\n"
                       "loss = F.mse_loss(enc(x), 0.9 * q)", ""),
    "target by detach": (TARGET, "loss = F.mse_loss(enc(x), target(x).detach())", ""),
    "target by item": (TARGET, "loss = F.mse_loss(enc(x), 0 * enc(x) + target(x).mean().item())",
                       ""),
    "own value as target": ("", "loss = F.mse_loss(enc(x), 0.9 * enc(x).detach().roll(1, 0))", ""),
    "own value without gradient": ("", "with torch.no_grad():\n    q = enc(x).roll(1, 0)\n"
                                   "loss = F.mse_loss(enc(x), q)", ""),
    "double q": (TARGET, "with torch.no_grad():\n    a = enc(x).argmax(1, keepdim=True)\n"
                 "    q = target(x).gather(1, a)\nloss = F.mse_loss(enc(x).gather(1, a), q)", ""),
    "moving teacher": (TARGET, "loss = F.mse_loss(enc(x), target(x).detach())",
                       "with torch.no_grad():\n    for t, s in zip(target.parameters(), "
                       "enc.parameters()):\n        t.mul_(0.9).add_(s, alpha=0.1)\n"),
    "moving teacher by data": (TARGET, "loss = F.mse_loss(enc(x), target(x).detach())",
                               "for t, s in zip(target.parameters(), enc.parameters()):\n"
                               "    t.data.mul_(0.9).add_(s.data, alpha=0.1)\n"),
    "straight-through": ("", f"{H}h = h + (h.round() - h).detach()\n{LOSS}", ""),
    "straight-through by data": ("", f"{H}h = h + (h.round() - h).data\n{LOSS}", ""),
    "straight-through sign": ("", f"{H}h = (h.sign() - h).detach() + h\n{LOSS}", ""),
    "gumbel, hard": ("", f"{H}h = F.gumbel_softmax(h, hard=True)\n{LOSS}", ""),
    "vector quantization": (
        "book = nn.Parameter(torch.randn(5, 4))\n",
        f"{H}q = book[torch.cdist(h, book).argmin(1)]\n"
        "commit = F.mse_loss(h, q.detach()) + F.mse_loss(q, h.detach())\n"
        f"h = h + (q - h).detach()\n{LOSS} + commit", ""),
    "moving code book": (
        "book = torch.randn(5, 4)\n",
        f"{H}near = torch.cdist(h, book).argmin(1)\nq = book[near]\n"
        "with torch.no_grad():\n    book[near] = 0.9 * book[near] + 0.1 * h\n"
        f"h = h + (q - h).detach()\n{LOSS}", ""),
    "byol": (TARGET, "a, b = aux(enc(x)), aux(enc(x + 0.1))\nwith torch.no_grad():\n"
             "    ta, tb = target(x), target(x + 0.1)\n"
             "loss = -F.cosine_similarity(a, tb).mean() - F.cosine_similarity(b, ta).mean()", ""),
    "simsiam": ("", "za, zb = enc(x), enc(x + 0.1)\npa, pb = aux(za), aux(zb)\n"
                "loss = -F.cosine_similarity(pa, zb.detach()).mean()\n"
                "loss = loss - F.cosine_similarity(pb, za.detach()).mean()", ""),
    "dino": (TARGET + "center = torch.zeros(4)\n",
             "with torch.no_grad():\n    t = F.softmax((target(x) - center) / 0.1, 1)\n"
             "loss = -(t * F.log_softmax(enc(x), 1)).sum(1).mean()\n"
             "center = 0.9 * center + 0.1 * t.mean(0)", ""),
    "moco queue": ("queue = F.normalize(torch.randn(6, 4), dim=1)\n" + TARGET,
                   "q = F.normalize(enc(x), dim=1)\nwith torch.no_grad():\n"
                   "    k = F.normalize(target(x), dim=1)\n"
                   "logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.T], 1)\n"
                   "loss = F.cross_entropy(logits, torch.zeros(8, dtype=torch.long))",
                   "queue = torch.cat([k, queue])[:6]\n"),
    "dpo reference": (TARGET, "new = F.log_softmax(enc(x), 1)\nwith torch.no_grad():\n"
                      "    old = F.log_softmax(target(x), 1)\nr = new - old\n"
                      "loss = -F.logsigmoid(0.1 * (r[:, 0] - r[:, 1])).mean()", ""),
    "a memory bank by slices": (
        "bank = torch.randn(8, 4)\n",
        f"{H}with torch.no_grad():\n    bank[:4] = h[:4]\n{LOSS} + F.mse_loss(h, bank.roll(1, 0))",
        ""),
    "a memory bank through views": (
        "bank = torch.randn(8, 4)\n",
        f"{H}with torch.no_grad():\n    bank[:4].mul_(0.9).add_(h[:4], alpha=0.1)\n"
        f"{LOSS} + F.mse_loss(h, bank.roll(1, 0))", ""),
    "distillation": (TARGET, "soft = F.softmax(target(x) / 2, 1).detach()\n"
                     "loss = F.kl_div(F.log_softmax(enc(x) / 2, 1), soft)", ""),
    "advantage normalization": (
        "", f"{H}v = head(h)\nadv = (y - v).detach()\n"
        "adv = (adv - adv.mean()) / (adv.std() + 1e-8)\n"
        "loss = -(adv * F.log_softmax(h, 1)[:, :1]).mean() + F.mse_loss(v, y)", ""),
    "advantage by numbers": (
        "", f"{H}v = head(h)\nadv = (y - v).detach()\n"
        "adv = (adv - adv.mean().item()) / adv.std().item()\n"
        "loss = -(adv * F.log_softmax(h, 1)[:, :1]).mean() + F.mse_loss(v, y)", ""),
    "baseline through NumPy": (
        "", f"{H}v = head(h)\nadv = torch.from_numpy(y.numpy() - v.detach().numpy())\n"
        "loss = -(adv * F.log_softmax(h, 1)[:, :1]).mean() + F.mse_loss(v, y)", ""),
    "moving baseline": ("base = 0.0\n", f"{H}score = (y - base)\n"
                        "loss = -(score * F.log_softmax(h, 1)[:, :1]).mean()\n"
                        "base = 0.9 * base + 0.1 * loss.item()", ""),
    "ppo": ("", "logp = F.log_softmax(enc(x), 1)[:, :1]\nif step == 0:\n    old = logp.detach()\n"
            "ratio = (logp - old).exp()\nloss = -torch.min(ratio * y, ratio.clamp(0.8, 1.2) * y)"
            ".mean()", ""),
    "ppo, kept as numbers": (
        "", "logp = F.log_softmax(enc(x), 1)[:, 0]\nif step == 0:\n"
        "    old = [v.item() for v in logp]\nratio = (logp - torch.tensor(old)).exp()\n"
        "loss = -(ratio * y[:, 0]).mean()", ""),
    "sac temperature": ("", f"{H}{LOSS} + (scale.exp().detach() * h.mean())\n"
                        "loss = loss - (scale * (h.mean() + 1).detach())", ""),
    "gradient reversal": (FLIP, f"{H}{LOSS} + aux(Flip.apply(h)).pow(2).mean()", ""),
    "truncated recurrence": ("state = torch.zeros(8, 4)\n",
                             f"h = torch.tanh(enc(x) + aux(state))\n{LOSS}",
                             "state = h.detach()\n"),
    "truncated recurrence by data": ("state = torch.zeros(8, 4)\n",
                                     f"h = torch.tanh(enc(x) + aux(state))\n{LOSS}",
                                     "state = h.data\n"),
    "memory of NumPy": ("state = np.zeros((8, 4), dtype='float32')\n",
                        f"h = torch.tanh(enc(x) + aux(torch.from_numpy(state)))\n{LOSS}",
                        "state = h.detach().numpy()\n"),
    "adversarial example": (
        "", "z = x.clone().requires_grad_()\n"
        "g = torch.autograd.grad(F.mse_loss(head(enc(z).tanh()), y), z)[0]\n"
        f"h = enc(x + 0.1 * g / g.norm()).tanh()\n{LOSS}", ""),
    "sample by its energy": (
        "", "s = torch.randn(8, 3)\nfor _ in range(2):\n    s.requires_grad_()\n"
        "    s = (s - 0.1 * torch.autograd.grad(head(enc(s)).sum(), s)[0]).detach()\n"
        "loss = head(enc(x)).mean() - head(enc(s)).mean()", ""),
    "first-order step": (
        "", f"{H}g = torch.autograd.grad(F.mse_loss(head(h), y), head.weight, retain_graph=True)"
        "[0]\nloss = F.mse_loss(F.linear(h, head.weight - 0.1 * g, head.bias), y)", ""),
    "first-order step by choice": ("first_order = True\n", INNER.format(
        "if first_order:\n    g = g.detach()\n", ""), ""),
    "a recorded derivative that weighs": (
        "", INNER.format("w = g.detach().norm()\n", "") + " + w * inner", ""),
    "adversarial example of a recorded derivative": (
        "", "z = x.clone().requires_grad_()\n"
        "g, = torch.autograd.grad(F.mse_loss(head(enc(z)), y), z, create_graph=True)\n"
        "h = enc(z + 0.1 * g.detach()).tanh()\nloss = F.mse_loss(head(h), y)", ""),
    "weighed by gradients": (
        "", f"{H}one, two = F.mse_loss(head(h), y), h.pow(2).mean()\n"
        "a, b = (torch.autograd.grad(l, enc.weight, retain_graph=True)[0].norm()"
        " for l in (one, two))\nloss = one + a / (b + 1e-6) * two", ""),
    "a map of what matters": (
        "", f"{H}w = torch.autograd.grad(head(h).sum(), h, retain_graph=True)[0].mean(0)\n"
        f"{LOSS} + (w * h).relu().mean()", ""),
    "a loss that weighs others": ("", f"{H}one = F.mse_loss(head(h), y)\n"
                                  "two = aux(h).pow(2).mean()\nw = (one / two).item()\n"
                                  "loss = one + w * two", ""),
    "a loss of its own size": ("", f"{H}loss = F.mse_loss(head(h), y)\n"
                               "loss = loss / loss.item()", ""),
    "normed by its own size": ("", f"{H}h = h / h.abs().max().item()\n{LOSS}", ""),
    "normed by a detached size": ("", f"{H}h = h / h.norm().detach()\n{LOSS}", ""),
    "focal weight": ("", f"{H}e = (head(h) - y).pow(2)\nloss = (e.detach() * e).mean()", ""),
    "pseudo-labels": ("", f"{H}label = h.argmax(1)\nloss = F.cross_entropy(h, label) + "
                      "head(h).pow(2).mean()", ""),
    "frozen features": ("", f"with torch.no_grad():\n    f = enc(x)\nh = aux(f)\n{LOSS}", ""),
    "logged": ("", f"{H}{LOSS}\nhistory.append(loss.item())\ntotal += float(loss)\n"
               "best = min(best, loss.item())", "print(loss.item(), scale.item())\n"),
    "logged through NumPy": ("", f"{H}{LOSS}\nhistory.append(h.detach().numpy().mean())\n"
                             "curve = h.tolist()", "w = enc.weight.data.numpy().copy()\n"),
    "a step by its number": ("", f"{H}{LOSS}\nif loss.item() > 0.5:\n    loss = loss * 2", ""),
    "updated by hand": ("", f"{H}{LOSS}", "for p in held:\n    p.data -= 0.01 * p.grad.data "
                        "if p.grad is not None else 0\n"),
    "clipped weights": ("", f"{H}{LOSS}", "for p in held:\n    p.data.clamp_(-1, 1)\n"),
    "normed by a number of a weight": ("", f"{H}k = enc.weight.norm().item()\n"
                                       "loss = F.mse_loss(head(h) / (1 + k), y)", ""),
    "semi-gradient by data": (
        "", f"{LATER}\nloss = F.mse_loss(enc(x)[:, 0], (y[:, 0] + 0.9 * later).data)", ""),
    "semi-gradient through NumPy": (
        "", f"{LATER}.detach().numpy()\ngoal = torch.from_numpy(y[:, 0].numpy() + later)\n"
        "loss = F.mse_loss(enc(x)[:, 0], goal)", ""),
    "semi-gradient by a list": (
        "", f"{LATER}.tolist()\ngoal = torch.tensor([0.9 * v for v in later])\n"
        "loss = F.mse_loss(enc(x)[:, 0], y[:, 0] + goal)", ""),
    "the policy before, through NumPy": (
        "", "old = F.log_softmax(enc(x), 1)[:, :1].detach().numpy()\n"
        "ratio = (F.log_softmax(enc(x), 1)[:, :1] - torch.from_numpy(old)).exp()\n"
        "loss = -torch.min(ratio * y, ratio.clamp(0.8, 1.2) * y).mean()", ""),
    "soft labels by data": (
        "", "soft = F.softmax(enc(x), 1).data\n"
        "loss = F.kl_div(F.log_softmax(enc(x + 0.1), 1), soft)", ""),
    "another network's advantage": (
        CRITIC, "base = critic(x).detach().numpy()\nadv = torch.from_numpy(y.numpy() - base)\n"
        "loss = -(adv * F.log_softmax(enc(x), 1)[:, :1]).mean() + F.mse_loss(critic(x), y)", ""),
    "a sample by a parameter's number": (
        "", "a = np.random.normal(scale.item(), 1.0)\n"
        f"{H}{LOSS} - (a - 2) ** 2 * (scale - a).pow(2)", ""),
    "a Function's bound": (
        BOUND, f"{H}loss = F.mse_loss(Bound.apply(head(h), scale), y)", ""),
    "a sample moved by data": (
        "", "z = torch.rand(8, 3, requires_grad=True)\n"
        "z.data += 0.1 * torch.autograd.grad(head(enc(z)).sum(), z)[0]\n"
        "loss = head(enc(x)).pow(2).mean() - head(enc(z.detach())).mean()", ""),
    "an adversarial example as a Variable": (
        "", "z = x.clone().requires_grad_()\n"
        "g = torch.autograd.grad(F.mse_loss(head(enc(z)), y), z)[0]\n"
        "z = torch.autograd.Variable(x + 0.1 * g.sign())\n"
        "loss = F.mse_loss(head(enc(z)), y) + F.mse_loss(head(enc(x)), y)", ""),
    "a sample moved by NumPy": (
        "", "z = torch.rand(8, 3, requires_grad=True)\n"
        "g = torch.autograd.grad(head(enc(z)).sum(), z)[0].numpy()\n"
        "z = torch.from_numpy(z.detach().numpy() - 0.1 * g)\n"
        "loss = head(enc(x)).pow(2).mean() - head(enc(z)).mean()", ""),
    "a score function": (
        "from torch.distributions import Normal\n",
        f"{H}q = Normal(h, 1.0)\nz = q.sample()\nr = -(z - 1).pow(2)\n"
        "loss = -(q.log_prob(z) * (r - r.mean())).mean() + head(h).pow(2).mean()", ""),
    "a score function of one number": (
        "from torch.distributions import Normal\n",
        "q = Normal(enc(x)[0, 0], 1.0)\nz = q.sample()\nloss = -q.log_prob(z) * 1.0", ""),
    "a sample that is stopped": (
        "from torch.distributions import Normal\n",
        f"{H}z = Normal(h, 1.0).sample().detach()\n{LOSS} + head(z).pow(2).mean()", ""),
    "a target of L1": ("", f"{H}loss = F.l1_loss(head(h), 5 * head(h.roll(1, 0)).detach())", ""),
    "a margin": ("", "loss = F.relu((enc(x) - enc(x.roll(1, 0)).detach()).norm() + 9).mean()", ""),
    "straight-through into a linear loss": (
        "", "w = enc.weight + (enc.weight.sign() - enc.weight).detach()\nloss = (x @ w.T).mean()",
        ""),
    "the value of one loss, the gradient of another": (
        "", f"{H}loss = F.mse_loss(head(h), y)\nloss = loss - loss.detach() + "
        "(head(h).round() - y).abs().mean().detach()", ""),
    "a linear margin to what the model gave": ("", f"{REFERENCE}"
        "loss = -((enc(x).mean() - a.mean()) - (enc(x.flip(1)).mean() - b.mean()))", ""),
    "the same in a row": ("", f"{REFERENCE}"
        "loss = b.mean() - a.mean() + enc(x).mean() - enc(x.flip(1)).mean()", ""),
    "a number's baseline": ("", f"{H}v = aux(h)[:, :1]\nadvantage = head(h).mean() - "
                            "v.detach().mean()\nloss = F.mse_loss(v, y) - advantage", ""),
    "a baseline": ("", f"{H}v = aux(h)[:, :1]\nloss = -(head(h) - v.detach()).mean() + "
                   "F.mse_loss(v, y)", ""),
    "rows that are stopped": ("", f"{H}o = head(h)\no = torch.where(y > 0, o, o.detach())\n"
                              "loss = F.mse_loss(o, y)", ""),
    "a helper that stops": ("def sg(t):\n    return t.detach()\n",
                            f"{H}loss = F.mse_loss(head(h), sg(y)) + aux(sg(h)).pow(2).mean()", ""),
    "both normed by their own size": (
        "def normed(t):\n    return t / (t.norm().detach() + 1)\n",
        f"{H}loss = F.mse_loss(normed(head(h)), normed(y))", ""),
    "a probe": ("seen = {}\nenc.register_forward_hook(lambda m, i, o: seen.update(h=o.detach()))\n",
                f"{H}{LOSS} + aux(seen['h']).pow(2).mean()", ""),
    "importance weights": ("", "logp = F.log_softmax(enc(x), 1)\nw = logp[:, :1].exp().detach()\n"
                           "loss = (w * (logp[:, 1:].sum(1, keepdim=True) - y).pow(2)).mean()", ""),
}  # fmt: skip


@pytest.mark.one_in(12)
@pytest.mark.parametrize("name", MEANT)
def test_what_is_meant_is_no_alarm(name: str) -> None:
    before, body, after = MEANT[name]
    found = told(body, before, after)
    assert found.diagnosis is None, found.output
    assert found.output.count("worth a look") <= 1, found.output


def test_there_are_enough_that_mean_it() -> None:
    assert len(MEANT) >= 40


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" in metafunc.fixturenames:
        number = metafunc.config.getoption("--programs")
        metafunc.parametrize("seeds", [range(i, min(i + 20, number)) for i in range(0, number, 20)])


def test_correct_programs_raise_no_alarm(seeds: range) -> None:
    """Generated ones; the cell is run again only where something left the graph in a round."""
    for text in (program(seed) for seed in seeds):
        if suspected(text):
            found = played((text,))
            assert found.diagnosis is None, f"{text}\n{found.output}"


def suspected(text: str) -> bool:
    """Whether the cell would be run again."""
    notebook = Notebook()
    code = notebook.add(text)
    with torch.random.fork_rng(devices=()), watch(notebook.program, 1) as recording:
        exec(code, notebook.namespace)
    return bool(recording.suspicions())


@pytest.mark.parametrize(
    ("late", "rest"),
    [
        ("loss = loss + 0.1 * h.abs().mean().item()", "h.abs().mean().item()"),
        (
            "g, = torch.autograd.grad(head(h).sum(), h)\nloss = loss + g.norm()",
            "torch.autograd.grad(head(h).sum(), h)",
        ),
    ],
    ids=["a number", "a derivative"],
)
def test_what_counts_in_late_rounds_only(late: str, rest: str) -> None:
    body = f"h = enc(x).tanh()\n{TERM}\nif step > 5:\n{textwrap.indent(late, '    ')}"
    loop = LOOP.replace("range(4)", "range(8)") + textwrap.indent(body, "    ") + END
    found = played(cells_of(HEAD + loop))
    assert found.diagnosis is not None, found.output
    assert found.diagnosis.finding.facts["operation"] == rest


def test_what_is_logged_after_the_rounds_makes_no_run_longer() -> None:
    body = f"h = enc(x).tanh()\n{TERM}"
    loop = LOOP + textwrap.indent(body, "    ") + END + "print(enc(x).mean().item())\n"
    assert played(cells_of(HEAD + loop)).diagnosis is None


ROLLOUT = """steps = torch.split(x, 2)
def rollout():
    return torch.cat([F.log_softmax(enc(part), 1)[:, 0] for part in steps])
# %%
"""
NEW = "new = F.log_softmax(enc(x), 1)[:, 0]\n"
#: What the loop computes, the difference that gives no gradient, the line that the rewrite brings.
CANCELLED = {
    "a ratio to what has kept its graph": (
        f"old = rollout()\n{NEW}ratio = (new - old).exp()\n"
        "loss = -(ratio * y[:, 0]).mean() + 0.1 * enc(x).pow(2).mean()",
        "new - old",
        "ratio = (new - old.detach()).exp()",
    ),
    "the other way round": (
        f"old = rollout()\n{NEW}loss = ((old - new) * y[:, 0]).sum() + 0.1 * enc(x).pow(2).mean()",
        "old - new",
        "loss = ((old.detach() - new) * y[:, 0]).sum() + 0.1 * enc(x).pow(2).mean()",
    ),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CANCELLED)
def test_a_difference_whose_sides_cancel_is_named(name: str) -> None:
    body, difference, line = CANCELLED[name]
    body += "\nhistory.append(loss.item())"
    found = told(body, ROLLOUT)
    assert found.diagnosis is not None, found.output
    finding, rewrites = found.diagnosis.finding, found.diagnosis.rewrites
    assert (finding.cause, finding.variant) == ("gradient_always_zero", "difference")
    assert finding.facts["operation"] == difference and finding.facts["operand"] == "old"
    assert finding.facts["parameter"].startswith(("enc.", "held"))
    assert "old" in finding.tensors[0].names
    cells = cells_of(HEAD + ROLLOUT + LOOP + textwrap.indent(body, "    ") + END)
    assert added(cells, edited(cells, rewrites[0])) == [line]


#: Differences that are equal only at first, or at their least, or of what differs.
DIFFERENCES = {
    "a number": f"old = rollout().detach()\n{NEW}loss = -((new - old).exp() * y[:, 0]).mean()",
    "what has become 0": f"old = rollout()\n{NEW}loss = (new - old).pow(2).mean() + 0 * new.sum()",
    "of two inputs": "loss = ((enc(x) - enc(x.flip(0))) * y).sum()",
    "zero at first": "loss = (scale * (weights[0] * enc(x) - weights[1] * enc(x)) * y).sum()",
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", DIFFERENCES)
def test_other_differences_raise_no_alarm(name: str) -> None:
    found = told(f"{DIFFERENCES[name]}\nhistory.append(loss.item())", ROLLOUT)
    assert found.diagnosis is None, found.output


EXPLAINS = """import torch
class Explainer:
    def __init__(self, model):
        self.model = model
    def attribute(self, x):
        return (x * torch.autograd.grad(self.model(x).sum(), x)[0]).abs()
"""


def test_a_derivative_that_a_library_takes_without_its_graph(tmp_path: Path) -> None:
    body = (
        "given = x.clone().requires_grad_()\nshare = explainer.attribute(given)\n"
        "loss = F.mse_loss(head(enc(x).tanh()), y) + share[:, 0].mean()"
    )
    before = (
        "from attributes import Explainer\nexplainer = Explainer(nn.Sequential(enc, nn.Tanh(), "
        "head))\n# %%\n"
    )
    with installed(tmp_path, "attributes", EXPLAINS):
        found = told(body, before)
        assert found.diagnosis is not None, found.output
        finding, (first, *_) = found.diagnosis.finding, found.diagnosis.rewrites
        assert (finding.cause, finding.variant) == ("silent_cut", "derivative"), found.output
        assert first.fix == "recorded_in_library" and first.outcome is Outcome.RUNS
        cells = cells_of(HEAD + before + LOOP + textwrap.indent(body, "    ") + END)
        lines = added(cells, edited(cells, first))
    assert lines[-2].startswith("with unittest.mock.patch.object(torch.autograd,")


BY_LIBRARY = """import torch
class kept_apart:
    state = True
    def __init__(self, state):
        self.new = state
    def __enter__(self):
        self.before, kept_apart.state = kept_apart.state, self.new
    def __exit__(self, *args):
        kept_apart.state = self.before
    @classmethod
    def on(cls):
        return cls.state
def posterior(h, weight):
    cache = torch.tanh(h @ weight)
    if kept_apart.on():
        cache = cache.detach()
    return h @ weight + cache.sin()
def scaled(h, weight):
    cache = torch.tanh(weight)
    if kept_apart.on():
        cache = cache.detach()
    return h / h.detach().norm() @ cache + h @ weight
class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.tanh(x @ weight)
    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        with torch.no_grad():
            inner = grad * (1 - torch.tanh(x @ weight) ** 2)
            return inner @ weight.T, x.T @ inner
def solve(x, weight):
    return Adjoint.apply(x, weight)
"""
SWITCHED = "z = bylibrary.posterior(enc(x), aux.weight)"
SENSITIVITY = (
    "given = x.clone().requires_grad_()\nz = bylibrary.solve(given, enc.weight.T)\n"
    "(slope,) = torch.autograd.grad(z.sum(), given, create_graph=True)\n"
    "size = slope.pow(2).sum(1).mean()\n"
)


def by_library(folder: Path, body: str) -> Told:
    with installed(folder, "bylibrary", BY_LIBRARY):
        return told(body, "import bylibrary\n# %%\n")


def test_what_a_library_stops_by_a_switch_is_told_with_the_switch(tmp_path: Path) -> None:
    found = by_library(tmp_path, f"{SWITCHED}\nloss = F.mse_loss(head(z), y)")
    assert found.diagnosis is not None, found.output
    finding, (first, *_) = found.diagnosis.finding, found.diagnosis.rewrites
    assert (finding.cause, finding.variant) == ("silent_cut", "partial_switch"), found.output
    assert finding.facts["value"] == "bylibrary.kept_apart"
    assert finding.facts["inside"] == "cache = cache.detach()"
    assert first.outcome is Outcome.RUNS
    assert "    with bylibrary.kept_apart(False):\n        z = " in first.edits[0].new_source


def test_a_derivative_that_a_librarys_backward_does_not_record(tmp_path: Path) -> None:
    found = by_library(tmp_path, f"{SENSITIVITY}loss = F.mse_loss(head(z), y) + 0.1 * size")
    assert found.diagnosis is not None, found.output
    finding = found.diagnosis.finding
    assert (finding.cause, finding.variant) == ("silent_cut", "graphless"), found.output
    assert finding.facts["value"] == "Adjoint" and finding.tensors[0].names[0] == "slope"


#: Of the switch and of the derivative: asked otherwise, of no use to what is stepped, and logged.
MEANT_BY_LIBRARY = {
    "switched": f"with bylibrary.kept_apart(False):\n    {SWITCHED}\nloss = F.mse_loss(head(z), y)",
    "not stepped": "z = bylibrary.posterior(enc(x).detach(), scale * torch.eye(4))\n"
    "opt.param_groups[0]['params'] = [*head.parameters()]\nloss = F.mse_loss(head(z), y)",
    "beside another stop": "loose = nn.Parameter(torch.eye(4))\n"
    "z = bylibrary.scaled(enc(x), loose)\nloss = F.mse_loss(head(z), y)",
    "logged": f"{SENSITIVITY}history.append(size.item())\nloss = F.mse_loss(head(z), y)",
}


@pytest.mark.parametrize("name", MEANT_BY_LIBRARY)
def test_what_is_meant_so_of_a_library(name: str, tmp_path: Path) -> None:
    found = by_library(tmp_path, MEANT_BY_LIBRARY[name])
    assert found.diagnosis is None, found.output
