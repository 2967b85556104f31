"""Statements moved where names allow it."""

from __future__ import annotations

import pytest
from rewriting import applied, at, cell, program_of, result

from autograd_explain.rewrite.transforms.move_statement import move_after, move_before, toggled_run


def after(code: str, needle: str, target: str) -> str | None:
    program = program_of(code)
    return result(move_after(program, at(program, needle, 2), at(program, target, 2)))


def before(code: str, needle: str, target: str) -> str | None:
    program = program_of(code)
    return result(move_before(program, at(program, needle, 2), at(program, target, 2)))


def test_comments_travel_with_their_statement() -> None:
    code = "# loose\n\n# mine\na = 1  # too\nb = 2\nc = 3\n"
    assert after(code, "a = 1", "b = 2") == "# loose\n\nb = 2\n# mine\na = 1  # too\nc = 3\n"


def test_blank_lines_stay() -> None:
    assert after("x = 0\n\na = 1\nb = 2\n", "a = 1", "b = 2") == "x = 0\n\nb = 2\na = 1\n"


def test_before() -> None:
    assert before("a = 1\nb = 2\nopt.step()\n", "opt", "a = 1") == "opt.step()\na = 1\nb = 2\n"


def test_constants_are_written_by_nothing() -> None:
    code = "a.backward(retain_graph=True)\nb.zero_grad(set_to_none=True)\n"
    assert (
        after(code, "a.", "b.") == "b.zero_grad(set_to_none=True)\na.backward(retain_graph=True)\n"
    )


def test_one_of_several_on_a_line() -> None:
    program = program_of("a = 1; b = 2  # c\nd = 3\n")
    from rewriting import spot

    assert result(move_after(program, spot(program, "b = 2"), at(program, "d ="))) == (
        "a = 1  # c\nd = 3\nb = 2\n"
    )


def test_block_around_what_is_to_wait() -> None:
    code = (
        "for x in xs:\n    loss = net(x)\n    if every:\n        with swapped(net) as ema:\n"
        "            log.append(look(ema))\n    loss.backward()\n"
    )
    moved = after(code, "with swapped", "loss.backward")
    assert moved is not None
    assert moved.index("loss.backward()") < moved.index("    if every:\n        with swapped")
    assert after(code.replace("look(ema))", "look(ema)); loss = f(x)"), "with", "loss.b") is None
    assert after(code.replace("look(ema))", "look(ema)); break"), "with", "loss.b") is None


CONFLICTS = [
    ("a = 1\nb = a\n", "a = 1", "b = a"),  # read in between
    ("b = a\na = 1\nc = 2\n", "b = a", "c = 2"),  # what it reads is written
    ("a = 1\na = 2\n", "a = 1", "a = 2"),
    ("log.append(a)\nprint(log)\n", "append", "print"),
    ("d.x = 1\nf(d)\n", "d.x", "f(d)"),
    ("loss = f(net(x))\nfreeze(net)\n", "loss", "freeze"),
    ("x.add_(1)\ny = x * 2\n", "x.add_", "y ="),
    ("import a\nb = a.c\n", "import a", "b ="),
    ("a = 1\n%run other\nb = 1\n", "a = 1", "b = 1"),
    ("def g():\n    a = 1\n    return 2\n", "a = 1", "return"),
    ("with f() as a: pass\nb = a\n", "with", "b = a"),
    ("opt.step()\nopt.zero_grad()\n", "step", "zero"),
]


@pytest.mark.parametrize(("code", "needle", "target"), CONFLICTS)
def test_names_forbid(code: str, needle: str, target: str) -> None:
    assert after(code, needle, target) is None


@pytest.mark.parametrize(
    ("passed", "target", "moves"),
    [
        ("n = 1", "curve.append(trace(opt.params))", True),
        ("n = len(opt.params)", "curve.append(trace(opt.params))", False),
        ("n = 1", "opt.zero_grad()", False),
        ("n = 1", "grads = trace(opt.params)", False),
    ],
)
def test_the_target_is_to_see_nothing_of_a_call(passed: str, target: str, moves: bool) -> None:
    program = program_of(f"opt.apply(grads)\n{passed}\n{target}\n")
    moved = move_after(program, at(program, "opt.apply"), at(program, target), unseen=True)
    assert result(moved) == (f"{passed}\n{target}\nopt.apply(grads)\n" if moves else None)


def test_looking_is_no_conflict() -> None:
    assert after("opt.step()\nprint(loss)\n", "step", "print") == "print(loss)\nopt.step()\n"


def test_a_target_in_a_loop_means_the_loop() -> None:
    code = "a = 1\nfor i in x:\n    b = i\nc = 2\n"
    assert after(code, "a = 1", "b = i") == "for i in x:\n    b = i\na = 1\nc = 2\n"


def test_never_out_of_a_block_or_into_a_function() -> None:
    assert after("for i in x:\n    a = 1\nb = 2\n", "a = 1", "b = 2") is None
    assert after("a = 1\ndef f():\n    b = 2\n", "a = 1", "b = 2") is None


def test_across_cells() -> None:
    program = program_of(
        """
        d_loss = f(D(fake))
        # for G
        g_loss = h(D(fake))

        d_loss.backward()
        optD.step()
        """,
        "print(d_loss)\n",
        """
        optG.zero_grad()
        g_loss.backward()
        """,
    )
    edits = move_before(program, at(program, "g_loss ="), at(program, "g_loss.backward"))
    assert applied(program, edits) == [
        "d_loss = f(D(fake))\n\nd_loss.backward()\noptD.step()\n",
        "print(d_loss)\n",
        "optG.zero_grad()\n# for G\ng_loss = h(D(fake))\ng_loss.backward()\n",
    ]


def test_across_cells_a_cell_in_between_counts() -> None:
    program = program_of("a = f(b)\n", "b = 2\n", "c = a\n")
    assert move_before(program, at(program, "a = f"), at(program, "c = a")) is None


def test_a_run_with_its_switches() -> None:
    code = cell(
        """
        freeze(D, True)
        g_loss = f(D(fake))
        freeze(D, False)
        d_loss.backward()
        optD.step()
        """
    )
    program = program_of(code)
    run = toggled_run(program, at(program, "g_loss"))
    assert run is not None
    text = result(move_after(program, run[0], at(program, "optD.step"), run[1]))
    assert text == "d_loss.backward()\noptD.step()\n" + "".join(
        f"{line}\n" for line in code.splitlines()[:3]
    )


def test_a_switch_must_come_along() -> None:
    code = "freeze(D, True)\ng_loss = f(D(fake))\nfreeze(D, False)\noptD.step()\n"
    assert after(code, "g_loss", "optD.step") is None


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("D.eval()", "D.train()"),
        ("D.requires_grad_(False)", "D.requires_grad_(True)"),
        (
            "for p in D.parameters(): p.requires_grad = False",
            "for p in D.parameters(): p.requires_grad = True",
        ),
    ],
)
def test_switches(first: str, last: str) -> None:
    program = program_of(f"{first}\nloss = D(x)\n{last}\n")
    run = toggled_run(program, at(program, "loss"))
    assert run is not None
    assert (run[0].line, run[1].line) == (1, 3)


def test_no_switches() -> None:
    program = program_of("a = 1\nloss = D(x)\nb = 1\n")
    run = toggled_run(program, at(program, "loss"))
    assert run is not None
    assert (run[0].line, run[1].line) == (2, 2)


def test_a_block_goes_before_nothing_that_it_needs() -> None:
    code = "y = f(x)\nif on:\n    x.requires_grad_()\n{}"
    program = program_of(code.format(""))
    first = result(move_before(program, at(program, "x.req"), at(program, "y ="), checked=False))
    assert first == "if on:\n    x.requires_grad_()\ny = f(x)\n"
    program = program_of(code.format("    g = grad(y, x)\n"))
    assert move_before(program, at(program, "x.req"), at(program, "y ="), checked=False) is None
