"""What every operator makes of a statement, and that each of them has its texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from notebook import cells_of
from rewriting import program_of

from autograd_explain.render.lint import slips
from autograd_explain.render.texts import LANGUAGES, load, read, split_title
from autograd_explain.repair.priors import EVERYWHERE, UNMET
from autograd_explain.rewrite import operators
from autograd_explain.rewrite.engine.draft import compiles
from autograd_explain.rewrite.engine.tree import tree_of
from autograd_explain.rewrite.operators.site import Change, Site
from autograd_explain.rewrite.operators.table import OPERATORS

#: An operator, a cell, and a line that one of its changes makes of it.
EDITS = [
    ("clone", "y = f(x) @ x", "y = f(x).clone() @ x"),
    ("clone", "y = f(x) @ x", "y = f(x.clone()) @ x.clone()"),
    ("clone", "y = a + b", "y = (a + b).clone()"),
    ("clone_first", "x[0] = 1", "x = x.clone()"),
    ("out_of_place", "x += 1", "x = x + 1"),
    ("out_of_place", "x.add_(1)", "x = x.add(1)"),
    ("out_of_place", "y = F.relu(x, inplace=True)", "y = F.relu(x, inplace=False)"),
    ("no_grad", "w -= 0.1 * g", "with torch.no_grad():"),
    ("with_graph", "with torch.no_grad():\n    a = w", "a = w"),
    ("repeat", "f(x)\ng(y)", "g(y)\nf(x)\ng(y)"),
    ("compute_again", "y = f(x)\nstep()\ny.backward()", "step()\ny = f(x)"),
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
    (
        "straight_through",
        "y = (p > 0.5).float()",
        "y = p + ((p > 0.5).float() - p).detach()",
    ),
    (
        "straight_through",
        "y = F.one_hot(f(x).argmax(-1), 4)",
        "new_value = f(x)\n"
        "y = new_value + (F.one_hot(new_value.argmax(-1), 4) - new_value).detach()",
    ),
    (
        "straight_through",
        "i = p.detach().argmax(-1)\ny = F.one_hot(i, 4).float()",
        "i = p.detach().argmax(-1)\ny = p + (F.one_hot(i, 4).float() - p).detach()",
    ),
    (
        "straight_through",
        "top, i = p.topk(2)\ny = torch.zeros_like(p).scatter(1, i, 1.0)",
        "y = p + (torch.zeros_like(p).scatter(1, i, 1.0) - p).detach()",
    ),
    ("tensors_joined", "y = torch.tensor(xs)", "y = torch.stack(xs)"),
    ("drop_call", "net = Net().half()", "net = Net()"),
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
    ("out_of_place", "xs[i] += y", "xs[i] = xs[i] + y"),
    ("with_graph", "with torch.set_grad_enabled(train):\n    a = w", "a = w"),
    ("keep_in_graph", "a = np.exp(x.detach().numpy())", "a = torch.exp(x)"),
    ("keep_in_graph", "a = torch.from_numpy(np.exp(-x.numpy()))", "a = torch.exp(-x)"),
    ("detached_copy", "y = torch.tensor(x)", "y = x.detach().clone()"),
    ("delete", "f(x)\ng(y)", "g(y)"),
    (
        "retain_grad",
        'def f(x):\n    "The sum."\n    return x.sum()',
        'def f(x):\n    "The sum."\n    x.retain_grad()',
    ),
    (
        "retain_grad",
        "def f(x):\n    return x.grad",
        "def f(x):\n    x.retain_grad()\n    return x.grad",
    ),
    (
        "no_grad",
        "a = f(x)\nb = g(a)\nc = h(b)",
        "with torch.no_grad():\n    a = f(x)\n    b = g(a)",
    ),
    ("move", "f(x)\ng(y)", "g(y)\nf(x)"),
    (
        "of_another",
        "w = nn.Linear(1, 1)\no = torch.optim.SGD(f(v))",
        "o = torch.optim.SGD(w.parameters())",
    ),
    (
        "made_again",
        "o = torch.optim.SGD(net.parameters())\nnet.fc = f()",
        "net.fc = f()\no = torch.optim.SGD(net.parameters())",
    ),
    (
        "made_again",
        "ps = list(net[0].parameters())\no = torch.optim.SGD(ps)\nf(net[0])",
        "f(net[0])\nps = list(net[0].parameters())\no = torch.optim.SGD(ps)",
    ),
    ("finite_fill", "s = s.masked_fill(m, -torch.inf)", "s = s.masked_fill(m, -1e9)"),
    (
        "as_argument",
        "class A:\n    def f(self, x):\n        self.w = nn.Parameter(x)\n        return self.w",
        "        w = x\n        return w",
    ),
    ("move", "for i in range(3):\n    f(i)\n    g(y)", "for i in range(3):\n    f(i)\ng(y)"),
]


TRIED = {operator for operator, _, _ in EDITS}

FIELD = Path(__file__).parents[1] / "field"
CASES = sorted(FIELD.glob("*/*/case.py"))[::25]
EVERY = 40


def changes(cell: str) -> Iterator[Change]:
    program = program_of(cell)
    tree = tree_of(program, program.cell(2))
    for statement in tree.statements:
        for operator in OPERATORS:
            yield from operator(Site(program, tree, statement))


@pytest.mark.parametrize(("operator", "cell", "expected"), EDITS)
def test_what_it_makes(operator: str, cell: str, expected: str) -> None:
    made = [c.make() for c in changes(cell) if c.operator == operator]
    texts = [edits[0].new_source for edits in made if edits]
    assert any(f"\n{expected}\n" in f"\n{text}\n" for text in texts), texts


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.parent.name)
def test_whatever_it_makes_is_a_program(case: Path) -> None:
    """Of real notebooks: some of all changes, and every one of those that put texts together."""
    cells = [c for c in cells_of(case.read_text("utf-8")) if c]
    found = (change for cell in cells for change in changes(cell))
    for number, change in enumerate(found):
        if number % EVERY == 0 or change.operator in ("of_another", "turn_flag"):
            for edit in change.make() or ():
                assert compiles(edit.new_source)


def test_every_operator_is_tried() -> None:
    """Also those that no notebook has met, of which the table says nothing."""
    assert EVERYWHERE.keys() - {UNMET} <= TRIED


def test_definitions_and_imports_stay() -> None:
    cell = "import math\nfrom os import path\ndef f(a, b=1):\n    return a\nclass A:\n    pass"
    for change in changes(cell):
        edits = change.make()
        if edits and change.operator not in ("delete", "move"):
            assert "import math\nfrom os import path\n" in edits[0].new_source


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_operator_has_a_text(language: str) -> None:
    texts = load(Path(operators.__path__[0]))
    text_of_all = read(texts[language])
    sections = text_of_all.sections
    assert list(slips(text_of_all, language)) == []
    by_causes = ("two", "called_itself", "filled_first", "twin")
    assert set(sections) == {f"fix repair_{name}" for name in (*TRIED, *by_causes)}
    for text in sections.values():
        title, reason = split_title(text)
        assert title and reason


@pytest.mark.parametrize("line", ["for p in ps:\n    p.copy_(q)", "x.add_(1)"])
def test_no_copy_that_nobody_reads_is_written(line: str) -> None:
    made = [c for c in changes(line) if c.operator.startswith("clone") and c.code in ("p", "x")]
    texts = [edits[0].new_source for c in made if (edits := c.make())]
    assert not any(".clone().copy_" in t or ".clone().add_" in t for t in texts)
    assert not any("    p = p.clone()" in t for t in texts)


@pytest.mark.parametrize(
    ("cell", "kept"),
    [("y = p.mean().round().long()", False), ("y = x.sign().detach()", False),
     ("y = x.max().item()", True), ("y = p.mean().long()", True)],
)  # fmt: skip
def test_a_graph_whose_gradient_is_zero_is_not_kept(cell: str, kept: bool) -> None:
    made = [c.make() for c in changes(cell) if c.operator == "keep_in_graph"]
    assert any(made) is kept
