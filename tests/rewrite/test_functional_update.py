"""Parameters that a loop updates by hand, of a copy or of the model itself, as a dictionary."""

from __future__ import annotations

import pytest
from rewriting import program_of, rewritten, spot

from autograd_explain.knowledge.silent_cut.functional_update import functional_update
from autograd_explain.model import Edits, Place
from autograd_explain.program import Program


def functional_copy(program: Program, place: Place) -> Edits | None:
    return functional_update(program, place, None)


CODE = """def adapt(model, x, y):
    fast = copy.deepcopy(model)
    loss = f(fast(x), y)
    grads = torch.autograd.grad(loss, list(fast.parameters()), create_graph=True)
    for p, g in zip(fast.parameters(), grads):
        {update}
    return fast
"""
MADE = """def adapt(model, x, y):
    weights = dict(model.named_parameters())
    fast = lambda *args: torch.func.functional_call(model, weights, args)
    loss = f(fast(x), y)
    grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
    weights.update({{name: {new} for (name, p), g in zip(weights.items(), grads)}})
    return fast
"""


@pytest.mark.parametrize(
    ("update", "new"),
    [
        ("p.data -= lr * g", "p - lr * g"),
        ("p.data -= g + decay", "p - (g + decay)"),
        ("p.data = p.data - lr * g", "p - lr * g"),
        ("p.data.sub_(g, alpha=lr)", "p.sub(g, alpha=lr)"),
        ("p.copy_(p - lr * g)", "p - lr * g"),
    ],
)
def test_update_by_hand(update: str, new: str) -> None:
    text = rewritten(functional_copy, CODE.format(update=update), "deepcopy")
    assert text == MADE.format(new=new)


def test_update_under_no_grad() -> None:
    loop = "    for p, g in zip(fast.parameters(), grads):\n        p -= lr * g\n"
    block = "    with torch.no_grad():\n" + "".join(f"    {x}\n" for x in loop.splitlines())
    code = CODE.format(update="p -= lr * g").replace(loop, block)
    assert rewritten(functional_copy, code, "deepcopy") == MADE.format(new="p - lr * g")


@pytest.mark.parametrize(
    "update", ["p.data -= g; count(p)", "log(p, g)", "p.data = p.data - g if g else p.data; f()"]
)
def test_what_does_anything_else_stays(update: str) -> None:
    assert rewritten(functional_copy, CODE.format(update=update), "deepcopy") is None


def test_copy_that_nothing_updates_stays() -> None:
    code = "def best(model):\n    kept = copy.deepcopy(model)\n    return kept\n"
    assert rewritten(functional_copy, code, "deepcopy") is None


STEP = """for x, y in batches:
    {before}
    grads = torch.autograd.grad(f(net(x), y), net.parameters(), create_graph=True)
    for p, g in zip(net.parameters(), grads):
        p.data -= rate * g
    loss = f(net(x2), y2)
    loss.backward()
    {after}
    net.eval()
"""
FUNCTIONAL = """for x, y in batches:
    {before}
    grads = torch.autograd.grad(f(net(x), y), net.parameters(), create_graph=True)
    new_weights = dict(net.named_parameters())
    new_fast = lambda *args: torch.func.functional_call(net, new_weights, args)
    new_weights.update({updated})
    loss = f(new_fast(x2), y2)
    loss.backward()
    {after}
    net.eval()
"""
UPDATED = "{new_name: p - rate * g for (new_name, p), g in zip(new_weights.items(), grads)}"
BACK = """with torch.no_grad():
        for p, w in zip(net.parameters(), new_weights.values()):
            p.copy_(w)
    print(net(x))"""


@pytest.mark.parametrize(
    ("after", "new"),
    [
        ("net.load_state_dict(start)", "net.load_state_dict(start)"),
        ("print(1)", BACK.replace("net(x)", "1")),
        (
            "self.net.load_state_dict(start)",
            BACK.replace("print(net(x))", "self.net.load_state_dict(start)"),
        ),
    ],
)
def test_parameters_of_the_model_itself(after: str, new: str) -> None:
    program = program_of(STEP.format(before="start = net.state_dict()", after=after))
    place, backward = spot(program, "p.data -= rate * g"), spot(program, "loss.backward()")
    edits = functional_update(program, place, backward)
    assert edits is not None
    assert edits[0].new_source == FUNCTIONAL.format(
        before="start = net.state_dict()", updated=UPDATED, after=new
    )


def test_several_updates_before_one_loss() -> None:
    inner = (
        "    for _ in range(3):\n        gs = torch.autograd.grad(f(net(x)), net.parameters())\n"
    )
    code = (
        f"def outer(net, x):\n{inner}        with torch.no_grad():\n"
        "            for p, g in zip(net.parameters(), gs):\n                p.sub_(rate * g)\n"
        "    f(net(x)).backward()\n    net.load_state_dict(start)\n"
    )
    program = program_of(code)
    place, backward = spot(program, "p.sub_(rate * g)"), spot(program, "f(net(x)).backward()")
    edits = functional_update(program, place, backward)
    assert edits is not None
    assert edits[0].new_source == (
        "def outer(net, x):\n    weights = dict(net.named_parameters())\n"
        "    fast = lambda *args: torch.func.functional_call(net, weights, args)\n"
        "    for _ in range(3):\n        gs = torch.autograd.grad(f(fast(x)), weights.values())\n"
        "        weights.update({name: p.sub(rate * g) for (name, p), g in "
        "zip(weights.items(), gs)})\n"
        "    f(fast(x)).backward()\n    net.load_state_dict(start)\n"
    )


def test_a_model_that_is_asked_for_more_stays() -> None:
    code = STEP.format(before="pass", after="pass").replace("f(net(x2), y2)", "net.loss(x2)")
    program = program_of(code)
    place, backward = spot(program, "p.data -= rate * g"), spot(program, "loss.backward()")
    assert functional_update(program, place, backward) is None
