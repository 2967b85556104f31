"""Items of a written-out loop reordered, or gone through twice."""

from __future__ import annotations

import pytest
from rewriting import applied, at, cell, program_of, rewritten

from autograd_explain.knowledge.step_between_backwards.loops import (
    item_first,
    step_in_own_loop,
)

ORDERS = [
    ("for n, l in [('a', x), ('b', y)]: f(l)", "y", "for n, l in [('b', y), ('a', x)]: f(l)"),
    ("for l in (x, y, z): f(l)", "y", "for l in (y, x, z): f(l)"),
    (
        "for n, l in {'a': x, 'b': y}.items(): f(l)",
        "y",
        "for n, l in {'b': y, 'a': x}.items(): f(l)",
    ),
    (
        "for n, l in zip(['a', 'b'], [x, y]): f(l)",
        "y",
        "for n, l in zip(['b', 'a'], [y, x]): f(l)",
    ),
    ("for l in losses: f(l)", "x", None),
    ("for l in [x, x]: f(l)", "x", None),
    ("for l in [*xs, y]: f(l)", "y", None),
]


@pytest.mark.parametrize(("before", "item", "after"), ORDERS)
def test_reorder(before: str, item: str, after: str | None) -> None:
    assert rewritten(item_first, before, "for", item) == after


def test_reorder_keeps_the_layout() -> None:
    before = """
        for name, loss in [
            ("q", loss_q),  # critic
            ("pi", loss_pi),
        ]:
            update(name, loss)
        """
    text = rewritten(item_first, cell(before), "update", "loss_pi")
    assert text is not None
    assert text.index("loss_pi") < text.index("loss_q")


def own_loop(code: str) -> list[str] | None:
    program = program_of(cell(code))
    edits = step_in_own_loop(program, at(program, "step()"), at(program, "backward("))
    return None if edits is None else applied(program, edits)


def test_step_in_own_loop() -> None:
    assert own_loop(
        """
        losses = [a, b]
        for opt, loss in zip(opts.values(), losses):
            opt.zero_grad()
            loss.backward()  # fills
            # now
            opt.step()  # trains
            log.append(1)
        print(2)
        """
    ) == [
        cell(
            """
            losses = [a, b]
            for opt, loss in zip(opts.values(), losses):
                opt.zero_grad()
                loss.backward()  # fills
            for opt, loss in zip(opts.values(), losses):
                # now
                opt.step()  # trains
                log.append(1)
            print(2)
            """
        )
    ]


@pytest.mark.parametrize(
    "code",
    [
        "pairs = zip(opts, losses)\nfor o, l in pairs:\n    l.backward()\n    o.step()\n",
        "pairs = (p for p in x)\nfor o, l in pairs:\n    l.backward()\n    o.step()\n",
        "def f(ps):\n    for o, l in ps:\n        l.backward()\n        o.step()\nf(zip(a, b))\n",
        "for o, l in make(x):\n    l.backward()\n    o.step()\n",
        "for o, b in zip(opts, batches):\n    l = f(b)\n    l.backward()\n    o.step()\n",
        "for l in losses:\n    l.backward()\no.step()\n",
        "for o, l in pairs:\n    if l:\n        l.backward()\n    o.step()\n",
    ],
)
def test_step_stays(code: str) -> None:
    assert own_loop(code) is None
