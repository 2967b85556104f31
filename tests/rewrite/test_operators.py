"""What every operator makes of a statement, and that each of them has its texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rewriting import program_of

from autograd_explain.render.texts import LANGUAGES, document, load, split_title
from autograd_explain.repair.priors import EVERYWHERE
from autograd_explain.rewrite import operators
from autograd_explain.rewrite.engine.tree import tree_of
from autograd_explain.rewrite.operators.site import Change, Site
from autograd_explain.rewrite.operators.table import OPERATORS

#: An operator, a cell, and a line that one of its changes makes of it.
EDITS = [
    ("clone", "y = f(x) @ x", "y = f(x).clone() @ x"),
    ("clone", "y = f(x) @ x", "y = f(x.clone()) @ x.clone()"),
    ("clone", "y = a + b", "y = (a + b).clone()"),
    ("clone_elements", "keep(states)", "keep([t.clone() for t in states])"),
    ("clone_first", "x[0] = 1", "x = x.clone()"),
    ("out_of_place", "x += 1", "x = x + 1"),
    ("out_of_place", "x.add_(1)", "x = x.add(1)"),
    ("out_of_place", "y = F.relu(x, inplace=True)", "y = F.relu(x, inplace=False)"),
    ("written_into", "w = w - 0.1 * g", "    w.copy_(w - 0.1 * g)"),
    ("no_grad", "w -= 0.1 * g", "with torch.no_grad():"),
    ("no_grad_function", "def f(x):\n    return x", "@torch.no_grad()"),
    ("no_grad_further", "with torch.no_grad():\n    a = w\nb = a + 1", "    b = a + 1"),
    ("with_graph", "with torch.no_grad():\n    a = w", "a = w"),
    ("no_inference_mode", "with torch.inference_mode():\n    a = w", "with torch.no_grad():"),
    ("repeat", "f(x)\ng(y)", "g(y)\nf(x)\ng(y)"),
    ("compute_again", "y = f(x)\nloss = y.sum()\nloss.backward()", "y = f(x)\nloss = y.sum()"),
    ("compute_in_loop", "y = f(x)\nfor i in range(3):\n    y.backward()", "    y = f(x)"),
    ("detach", "y = D(fake)", "y = D(fake.detach())"),
    ("detach_carried", "for x in xs:\n    h = f(h, x)", "    h = h.detach()"),
    (
        "detach_carried_states",
        "for x in xs:\n    h = f(h, x)",
        "    h = tuple(t.detach() for t in h)",
    ),
    ("detach_kept", "out, self.h = f(x)", "self.h = self.h.detach()"),
    ("keep_in_graph", "y = x.detach() * 2", "y = x * 2"),
    ("keep_in_graph", "y = np.exp(x)", "y = torch.exp(x)"),
    ("soft", "y = (p > 0.5).float()", "y = p.float()"),
    ("tensors_joined", "y = torch.tensor(xs)", "y = torch.stack(xs)"),
    ("drop_call", "net = Net().half()", "net = Net()"),
    ("number", "total += loss", "total += loss.item()"),
    ("number", "log.append(loss)", "log.append(loss.item())"),
    (
        "leaf_last",
        "x = torch.ones(2, requires_grad=True).double()",
        "x = torch.ones(2).double().requires_grad_()",
    ),
    ("new_leaf", "x = f(y)", "x = f(y).detach().requires_grad_()"),
    ("no_flag", "x = torch.rand(2, requires_grad=True)", "x = torch.rand(2)"),
    (
        "registered",
        "self.layers = [nn.Linear(2, 2)]",
        "self.layers = nn.ModuleList([nn.Linear(2, 2)])",
    ),
    ("retain_grad", "h = f(x)", "h.retain_grad()"),
    ("turn_flag", "y = f(x, keepdim=False)", "y = f(x, keepdim=True)"),
    ("reduce", "losses.backward()", "losses.mean().backward()"),
    (
        "create_graph",
        "g = torch.autograd.grad(y, x)",
        "g = torch.autograd.grad(y, x, create_graph=True)",
    ),
    (
        "allow_unused",
        "g = torch.autograd.grad(y, x)",
        "g = torch.autograd.grad(y, x, allow_unused=True)",
    ),
    (
        "allow_unused",
        "g = torch.autograd.grad(y, x)",
        "g = torch.autograd.grad(y, x, allow_unused=True, materialize_grads=True)",
    ),
    ("detach_other", "q = z.detach() + (c - z)", "q = z + (c - z).detach()"),
    ("put_together", "t, x = p[:, 0:1], p[:, 1:2]", "p = torch.cat([t, x], dim=1)"),
    ("put_together", "t, x = p[..., 0], p[..., 1]", "p = torch.stack([t, x], dim=-1)"),
    ("put_together", "t, x = p.unbind(dim=1)", "p = torch.stack([t, x], dim=1)"),
    (
        "part_of_derivative",
        "g = torch.autograd.grad(u, x[:, 0], v)[0]",
        "g = torch.autograd.grad(u, x, v)[0][:, 0]",
    ),
    (
        "derivative_itself",
        "L.backward(create_graph=True)\nd = sum((p.grad * v).sum() for p, v in zip(ps, vs))",
        "new_grads = torch.autograd.grad(L, ps, create_graph=True)\n"
        "d = sum((p * v).sum() for p, v in zip(new_grads, vs))",
    ),
    ("away_from_zero", "y = torch.sqrt(x)", "y = torch.sqrt((x + 1e-8))"),
    ("delete", "f(x)\ng(y)", "g(y)"),
    ("move", "f(x)\ng(y)", "g(y)\nf(x)"),
    ("move", "for i in range(3):\n    f(i)\n    g(y)", "for i in range(3):\n    f(i)\ng(y)"),
]


def changes(cell: str) -> Iterator[Change]:
    program = program_of(cell)
    tree = tree_of(program.cell(2))
    for statement in tree.statements:
        for operator in OPERATORS:
            yield from operator(Site(program, tree, statement))


@pytest.mark.parametrize(("operator", "cell", "expected"), EDITS)
def test_what_it_makes(operator: str, cell: str, expected: str) -> None:
    made = [c.make() for c in changes(cell) if c.operator == operator]
    texts = [edits[0].new_source for edits in made if edits]
    assert any(f"\n{expected}\n" in f"\n{text}\n" for text in texts), texts


def test_every_operator_is_tried() -> None:
    assert {operator for operator, _, _ in EDITS} == EVERYWHERE.keys()


def test_definitions_and_imports_stay() -> None:
    cell = "import math\nfrom os import path\ndef f(a, b=1):\n    return a\nclass A:\n    pass"
    for change in changes(cell):
        edits = change.make()
        if edits and change.operator not in ("delete", "move"):
            assert "import math\nfrom os import path\n" in edits[0].new_source


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_operator_has_a_text(language: str) -> None:
    texts = load(Path(operators.__path__[0]))
    sections = document(texts, language).sections
    assert set(sections) == {f"fix repair_{operator}" for operator in EVERYWHERE}
    for text in sections.values():
        title, reason = split_title(text)
        assert title and reason
