"""Forward statements computed again."""

from __future__ import annotations

import pytest
from rewriting import applied, at, cell, program_of, result, spot

from autograd_explain.knowledge.second_backward.attribute import recompute_attribute
from autograd_explain.rewrite.transforms.recompute import (
    compute_all_in_loop,
    filled_first,
    recompute_before,
)


def again(code: str, goal: str, *needles: str) -> str | None:
    program = program_of(code)
    return result(recompute_before(program, at(program, goal), [at(program, n) for n in needles]))


def test_recompute_before() -> None:
    code = "g = G(z)\nd = D(g)  # c\nf(d).backward()\n# now\n(-d).backward()\n"
    assert again(code, "(-d)", "d = D") == (
        "g = G(z)\nd = D(g)  # c\nf(d).backward()\n# now\nd = D(g)\n(-d).backward()\n"
    )
    assert again(code, "(-d)", "g = G", "d = D") == (
        "g = G(z)\nd = D(g)  # c\nf(d).backward()\n# now\ng = G(z)\nd = D(g)\n(-d).backward()\n"
    )


@pytest.mark.parametrize(
    "code",
    [
        "d = D(g)\ng = other(z)\n(-d).backward()\n",  # g is another tensor by then
        "d = D(d)\n(-d).backward()\n",  # would build on itself
        "def f():\n    d = D(g)\n(-d).backward()\n",
        "(-d).backward()\nd = D(g)\n",
        "d = D(g)\n(-d).backward()\n",  # what is there already
        "d = D(g)\n%run other.py\n(-d).backward()\n",
        "for i in x:\n    d = D(g)\n(-d).backward()\n",
    ],
)
def test_recompute_before_declines(code: str) -> None:
    assert again(code, "(-d)", "d = D") is None


def test_recompute_in_another_cell() -> None:
    program = program_of("d = D(g)\nd.backward()\n", "x = 1\n", "if x:\n    (-d).backward()\n")
    edits = recompute_before(program, at(program, "(-d)"), [at(program, "d = D")])
    assert applied(program, edits)[2] == "if x:\n    d = D(g)\n    (-d).backward()\n"


def test_of_a_branch_only_what_stands_ahead_matters() -> None:
    ahead = "d = net.D(g)\nif reg:\n    y = f(g)\n"
    behind = "    (-d).backward()\n    net.step(d)\n"
    code = ahead + behind
    assert again(code, "(-d)", "d = net") == f"{ahead}    d = net.D(g)\n{behind}"
    assert again(code.replace("y = f(g)", "g = f(g)"), "(-d)", "d = net") is None
    rounds = code.replace("if reg", "while reg")  # the next round has another net
    assert again(rounds, "(-d)", "d = net") is None


def into_loop(code: str, needle: str, use: str) -> str | None:
    program = program_of(code)
    return result(compute_all_in_loop(program, [at(program, needle)], at(program, use)))


def test_call_computed_in_the_inner_loop() -> None:
    code = "for e in es:\n    net.draw()\n    for x in xs:\n        net(x).sum().backward()\n"
    assert into_loop(code, "net.draw", "net(x)") == (
        "for e in es:\n    for x in xs:\n        net.draw()\n        net(x).sum().backward()\n"
    )


@pytest.mark.parametrize(
    "code",
    [
        "terms.append(f(w))\nfor x in xs:\n    use(x)\n",  # would grow in every round
        "draw(net)\nfor net in nets:\n    use(net)\n",
        "draw(net, x)\nfor x in xs:\n    use(net)\n",
    ],
)
def test_call_stays_before_the_loop(code: str) -> None:
    assert into_loop(code, "(", "use") is None


IN_LOOP = "reg = l2 * w.sum()  # r\nfor x in xs:\n    loss = f(x) + reg\n    loss.backward()\n"


def test_compute_in_loop() -> None:
    program = program_of(IN_LOOP)
    text = result(compute_all_in_loop(program, [at(program, "reg =")], at(program, "loss =")))
    assert text == (
        "for x in xs:\n    reg = l2 * w.sum()  # r\n    loss = f(x) + reg\n    loss.backward()\n"
    )


def test_compute_in_loop_across_cells() -> None:
    first, rest = IN_LOOP.split("\n", 1)
    program = program_of(first, "y = 1", rest)
    edits = compute_all_in_loop(program, [at(program, "reg =")], at(program, "loss ="))
    assert applied(program, edits)[2].splitlines()[1] == "    reg = l2 * w.sum()  # r"


@pytest.mark.parametrize(
    "code",
    [
        "reg = reg + 1\nfor x in xs:\n    loss = reg\n",
        "reg = f(x)\nfor x in xs:\n    loss = reg\n",
        "reg = f(w)\nfor x in xs:\n    loss = reg\n    reg = 0\n",
        "reg = f(w)\nw = 1\nfor x in xs:\n    loss = reg\n",
        "reg = f(w)\nloss = reg\n",
        "reg = f(next(batches))\nfor x in xs:\n    loss = reg\n",
    ],
)
def test_compute_in_loop_declines(code: str) -> None:
    program = program_of(code)
    assert compute_all_in_loop(program, [at(program, "reg =")], at(program, "loss =")) is None


def test_compute_in_loop_keeps_what_is_needed_before() -> None:
    code = "reg = f(w)  # once\nprint(reg)\nfor x in xs:\n    loss = reg\n"
    program = program_of(code)
    text = result(compute_all_in_loop(program, [at(program, "reg =")], at(program, "loss =")))
    assert text == code.replace("    loss", "    reg = f(w)\n    loss")


MODEL = """
class Model(nn.Module):
    def __init__(self, l2):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        # the penalty
        self.reg = 0
        self.add(self.w, l2)

    def add(self, w, l2):
        self.reg = self.reg + l2 * w.pow(2).sum()
"""


def test_recompute_attribute() -> None:
    program = program_of(
        MODEL, "m = Model(0.1)\nfor i in range(2):\n    loss = m.w.sum() + m.reg\n"
    )
    place, use = at(program, "self.reg = 0"), at(program, "loss =")
    model, loop = applied(program, recompute_attribute(program, place, use, "reg"))
    assert loop.splitlines()[2:] == ["    m.compute_reg()", "    loss = m.w.sum() + m.reg"]
    assert cell(
        """
                self.w = nn.Parameter(torch.ones(2))
                # the penalty
                self.l2 = l2
                self.compute_reg()

            def compute_reg(self):
                self.reg = 0
                self.add(self.w, self.l2)

            def add(self, w, l2):
        """
    ) in "".join(f"{line[4:]}\n" for line in model.splitlines()[3:])


def test_recompute_attribute_in_forward() -> None:
    program = program_of(MODEL + "\n    def forward(self, x):\n        return x + self.reg\n")
    place, use = at(program, "self.reg = 0"), at(program, "return")
    text = result(recompute_attribute(program, place, use, "reg"))
    assert text is not None
    assert "        self.compute_reg()\n        return x + self.reg\n" in text


def test_recompute_attribute_declines_where_the_constructor_reads_it() -> None:
    code = MODEL.replace("self.add(self.w, l2)", "self.add(self.w, l2)\n        print(self.reg)")
    program = program_of(code, "m = Model(1)\nloss = m.reg\n")
    edits = recompute_attribute(program, at(program, "self.reg = 0"), at(program, "loss ="), "reg")
    assert edits is None


def test_recompute_comes_too_late_for_a_loop_that_took_the_old_values() -> None:
    loop = "for loss in (a, b):\n    loss.backward()\n"
    assert again("b = g(x)\n" + loop, "loss.backward", "b =") is None
    assert again("b = g(x)\nfor opt in opts:\n    b.backward()\n", "b.backward", "b =") is not None


CHAIN = """
pred = net(x)
print(pred.shape)
loss = crit(pred, y)
for step in range(3):
    loss.backward()
    w -= 0.1 * w.grad
"""


def chained(code: str, *needles: str) -> str | None:
    program = program_of(code)
    places = [at(program, n, 2) for n in needles]
    return result(compute_all_in_loop(program, places, at(program, "loss.backward()", 2)))


def test_a_chain_goes_into_the_loop_in_its_order() -> None:
    """What is needed before the loop as well stays."""
    assert chained(CHAIN, "pred =", "loss =") == cell("""
        pred = net(x)
        print(pred.shape)
        for step in range(3):
            pred = net(x)
            loss = crit(pred, y)
            loss.backward()
            w -= 0.1 * w.grad
        """)


def test_no_chain_with_a_link_that_would_stay_behind() -> None:
    code = CHAIN.replace("print(pred.shape)", "y = pred.argmax(1)")
    assert chained(code, "pred =", "loss =") is None
    code = CHAIN.replace("    w -= 0.1 * w.grad", "    x -= 1").replace("crit(pred", "crit(x, pred")
    assert chained(code, "pred =", "loss =") is None


def test_what_the_head_of_the_loop_reads_stays_before_it_as_well() -> None:
    code = "h = net(x)\nwhile h.mean() > 1:\n    h.sum().backward()\n    opt.step()\n"
    assert into_loop(code, "h = net", "h.sum") == code.replace(
        "    h.sum", "    h = net(x)\n    h.sum"
    )
    code = "h = net(x)\nfor i in range(len(h)):\n    h[i].backward()\n"
    assert into_loop(code, "h = net", "h[i]") == code.replace(
        "    h[i]", "    h = net(x)\n    h[i]"
    )


def test_a_loop_that_has_taken_the_old_parts_is_left() -> None:
    code = "h = net(x)\nfor part in h.split(2):\n    part.sum().backward()\n"
    assert into_loop(code, "h = net", "part.sum") is None


def test_what_clears_gradients_changes_nothing_that_is_computed() -> None:
    code = "h = net(x)\nfor i in r:\n    net.zero_grad()\n    h.sum().backward()\n"
    moved = "for i in r:\n    net.zero_grad()\n    h = net(x)\n    h.sum().backward()\n"
    assert into_loop(code, "h = net", "h.sum") == moved
    assert into_loop(code.replace("zero_grad", "grow"), "h = net", "h.sum") is None


def test_what_the_rounds_go_over_was_made_before_them() -> None:
    code = "h = net(x)\nfor row in h:\n    (row * h).sum().backward()\n"
    assert into_loop(code, "h = net", "(row") is None


@pytest.mark.parametrize(("before", "first"), [("", True), ("    x = g(x)\n", False)])
def test_what_is_kept_of_the_first_call_is_computed_before_the_loop(
    before: str, first: bool
) -> None:
    loop = f"for i in range(3):\n{before}    y = f(x)\n    y.backward()\n"
    program = program_of(f"import torch\n{loop}")
    failed = at(program, "y.backward")
    found = filled_first(program, spot(program, "f(x)"), failed, False)
    new = None if found is None else applied(program, found[1])[0]
    assert (new == f"import torch\nwith torch.no_grad():\n    f(x)\n{loop}") is first
