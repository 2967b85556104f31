"""What is computed once before a loop, computed in every round."""

from __future__ import annotations

import pytest
from rewriting import at, program_of, result

from autograd_explain.knowledge.step_between_backwards.recompute_in_loop import (
    anew_for_next_round,
    in_every_round,
)


def rounds(code: str, *needles: str) -> str | None:
    program = program_of(code)
    places = [at(program, n) for n in needles]
    return result(in_every_round(program, places, at(program, "backward")))


def test_value_that_is_needed_before_the_loop_stays() -> None:
    code = (
        "logp, v = net(x)\nadv = (r - v).detach()  # fixed\nfor _ in range(3):\n"
        "    ratio = (logp - old).exp()\n    loss = (ratio * adv).mean()\n"
        "    loss.backward(retain_graph=True)\n    opt.step()\n"
    )
    assert rounds(code, "logp, v =", "ratio =") == (
        "logp, v = net(x)\nadv = (r - v).detach()  # fixed\nfor _ in range(3):\n"
        "    logp, v = net(x)\n    ratio = (logp - old).exp()\n    loss = (ratio * adv).mean()\n"
        "    loss.backward()\n    opt.step()\n"
    )


def test_chain_moves_into_the_loop() -> None:
    code = (
        "# once\nh = enc(x)\nscale = 2\nout = dec(h)\nwhile go:\n    opt.zero_grad()\n"
        "    (out * scale).sum().backward(None, retain_graph=True)\n    opt.step()\n"
    )
    assert rounds(code, "h = enc", "out = dec") == (
        "scale = 2\nwhile go:\n    opt.zero_grad()\n    # once\n    h = enc(x)\n    out = dec(h)\n"
        "    (out * scale).sum().backward(None)\n    opt.step()\n"
    )


def test_names_of_comprehensions_are_their_own() -> None:
    code = (
        "acts = {n: a.actor(obs[n]) for n, a in team.items()}\n"
        "grid = [[b * a for b in a.parts] for a in acts.values() for c in a]\n"
        "for n, a in team.items():\n"
        "    loss = a.critic(grid)\n    loss.backward(retain_graph=True)\n    a.opt.step()\n"
    )
    assert rounds(code, "acts =", "grid =") == (
        "for n, a in team.items():\n"
        "    acts = {n: a.actor(obs[n]) for n, a in team.items()}\n"
        "    grid = [[b * a for b in a.parts] for a in acts.values() for c in a]\n"
        "    loss = a.critic(grid)\n    loss.backward()\n    a.opt.step()\n"
    )


LOOP = "for b in bs:\n    (h * b).sum().backward()\n    opt.step()\n"
DECLINED = [
    "h = enc(b)\n" + LOOP,  # another b in the loop
    "h = h + enc(x)\n" + LOOP,  # builds on itself
    "h = enc(x)\nx = x + 1\n" + LOOP,
    "h = enc(x)\n" + LOOP.replace("in bs", "in h"),  # taken before the first round
    "if c:\n    h = enc(x)\n" + LOOP,
    "h += enc(x)\n" + LOOP,
    "h = enc(next(xs))\n" + LOOP,
    "h = enc(x)\n" + LOOP + "    x.mul_(2)\n",
    "h = enc(xs)\n" + LOOP + "    xs.append(b)\n",
    "h = enc(x)\n(h * b).sum().backward()\n",
    "h = [enc(i) for i in b]\n" + LOOP.replace("(h * b)", "sum(h)"),  # another b in the loop
    "h = [enc(b) for b in b.rows]\n" + LOOP.replace("(h * b)", "sum(h)"),
    "h = enc(xs)\n" + LOOP + "    [x.mul_(2) for x in xs]\n",
]


@pytest.mark.parametrize("code", DECLINED)
def test_declined(code: str) -> None:
    assert rounds(code, "enc(") is None


ROUND = (
    "value = critic(obs)\nfor _ in range(9):\n    obs, done = env.step()\n"
    "    nxt = {made}\n    loss = (value - nxt.detach()).square()\n    loss.backward()\n"
    "    opt.step()\n    if done:\n        break\n    {between}\n    value = nxt\n"
)


def anew(made: str, between: str = "steps += 1") -> str | None:
    code = ROUND.format(made=made, between=between)
    program = program_of(code)
    return result(anew_for_next_round(program, at(program, "value = nxt")))


def test_what_a_round_hands_on_is_computed_behind_its_step() -> None:
    found = anew("critic(obs)")
    assert found == ROUND.format(made="critic(obs)", between="steps += 1").replace(
        "value = nxt", "value = critic(obs)"
    )


def test_what_would_be_another_value_is_handed_on_as_it_is() -> None:
    assert anew("cell(obs, value)") is None
    assert anew("critic(obs)", between="obs = env.reset()") is None
    assert anew("critic(obs)", between="nxt = nxt * 2") is None
