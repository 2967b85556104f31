"""Items of a written-out loop reordered or taken out."""

from __future__ import annotations

import pytest
from rewriting import applied, at, cell, program_of, rewritten

from autograd_explain.knowledge.step_between_backwards.loops import (
    reorder_items,
    split_and_move,
    split_item,
    step_in_own_loop,
)

ORDERS = [
    ("for n, l in [('a', x), ('b', y)]: f(l)", "y", 0, "for n, l in [('b', y), ('a', x)]: f(l)"),
    ("for l in (x, y, z): f(l)", "x", -1, "for l in (y, z, x): f(l)"),
    (
        "for n, l in {'a': x, 'b': y}.items(): f(l)",
        "y",
        0,
        "for n, l in {'b': y, 'a': x}.items(): f(l)",
    ),
    (
        "for n, l in zip(['a', 'b'], [x, y]): f(l)",
        "y",
        0,
        "for n, l in zip(['b', 'a'], [y, x]): f(l)",
    ),
    ("for l in losses: f(l)", "x", 0, None),
    ("for l in [x, x]: f(l)", "x", 0, None),
    ("for l in [*xs, y]: f(l)", "y", 0, None),
]


@pytest.mark.parametrize(("before", "item", "to", "after"), ORDERS)
def test_reorder(before: str, item: str, to: int, after: str | None) -> None:
    assert rewritten(reorder_items, before, "for", item, to) == after


def test_reorder_keeps_the_layout() -> None:
    before = """
        for name, loss in [
            ("q", loss_q),  # critic
            ("pi", loss_pi),
        ]:
            update(name, loss)
        """
    text = rewritten(reorder_items, cell(before), "update", "loss_pi")
    assert text is not None
    assert text.index("loss_pi") < text.index("loss_q")


def test_split() -> None:
    before = "for n, l in [('q', a), ('pi', b)]:\n    f(n, l)  # go\nprint(1)\n"
    assert rewritten(split_item, before, "for", "b") == (
        "for n, l in [('q', a)]:\n    f(n, l)  # go\n"
        "for n, l in [('pi', b)]:\n    f(n, l)  # go\nprint(1)\n"
    )


@pytest.mark.parametrize(
    "before",
    [
        "for l in [a, b, c]: f(l)",  # not the last
        "for l in [b]: f(l)",
        "for l in [a, b]:\n    if l: break",
        "for l in [a, b]: f(l)\nelse: g()",
        "for i, l in enumerate([a, b]): f(l)",
    ],
)
def test_split_declines(before: str) -> None:
    assert rewritten(split_item, before, "for", "b") is None


def test_split_and_move() -> None:
    program = program_of(
        "loss_q = critic(batch)\nloss_pi = actor(batch)\n",
        "for n, l in [('q', loss_q), ('pi', loss_pi)]:\n    update(n, l)\n",
    )
    edits = split_and_move(program, at(program, "for n"), "loss_pi", at(program, "loss_pi ="))
    assert applied(program, edits) == [
        "loss_q = critic(batch)\n",
        "for n, l in [('q', loss_q)]:\n    update(n, l)\n"
        "loss_pi = actor(batch)\n"
        "for n, l in [('pi', loss_pi)]:\n    update(n, l)\n",
    ]


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
