"""Random cells: only the statement meant changes, everything else stays to the letter."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rewriting import applied, at, compiled, program_of, result

from autograd_explain.knowledge.input_without_grad.retain import requires_grad_after
from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.edits import apply, merge
from autograd_explain.rewrite.transforms.clone import clone_operand, functional_write
from autograd_explain.rewrite.transforms.grad_mode import under_no_grad
from autograd_explain.rewrite.transforms.move_statement import move_after
from autograd_explain.rewrite.transforms.out_of_place import out_of_place

PLAIN = st.sampled_from(
    [
        "a = f(b)",
        "print(a, 'x += 1')",
        "a = [\n    1,  # one\n\n    2,\n]",
        's = """\nx\n  %no\n"""',
        "b = 1; c = 2  # both",
        "plt.plot(c);",
        "c = lambda v: v + 1  # größe",
        "d = f'{a!r:>{c}}'",
        "del_ = {**d, 'k': (1,)}",
        "",
        "# a comment",
        "@g\ndef h(): pass",
        "if a: b = 2",
        "async def k(): await a",
    ]
)
MAGIC = st.sampled_from(["%matplotlib inline", "!ls -l | head", "v = !pwd", "f?", "%time f(1)"])
INDENTS = st.sampled_from(["    ", "  ", "\t"])
HEADS = st.sampled_from(
    ["for i in range(3):", "if a:", "with g() as v:  # why", "def run(x):", "while b:", "try:"]
)


@st.composite
def cells(draw: st.DrawFn, target: str) -> str:
    """A cell with `target` on a line of its own, perhaps deep inside, among other statements."""
    unit = draw(INDENTS)
    depth = draw(st.integers(0, 3))
    lines: list[str] = []
    closing: list[str] = []

    def some(level: int) -> list[str]:
        chosen = draw(st.lists(PLAIN | MAGIC if level == 0 else PLAIN, max_size=3))
        pad = unit * level
        return [
            pad + line if line.strip() and '"""' not in text else line
            for text in chosen
            if not ('"""' in text and level)
            for line in text.split("\n")
        ]

    if draw(st.booleans()):
        lines.append(draw(st.sampled_from(["%%time", "%%capture out"])))
    for level in range(depth):
        lines += some(level)
        head = draw(HEADS)
        lines.append(unit * level + head)
        if head == "try:":
            closing.insert(0, f"{unit * level}finally:\n{unit * (level + 1)}a = 1")
    lines += some(depth)
    lines.append(unit * depth + target)
    lines += [unit * depth + "use(x, w, h)", *some(depth), *closing]
    lines += some(0) if not closing else []
    return "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n"]))


def place_of(program: Program, target: str) -> Place:
    return at(program, target, 2)


def expected(text: str, target: str, *new: str) -> str:
    """The text with the target's line replaced by new lines of the same indentation."""
    lines = text.split("\n")
    at_line = next(n for n, line in enumerate(lines) if line.strip() == target)
    indent = lines[at_line][: len(lines[at_line]) - len(lines[at_line].lstrip())]
    lines[at_line : at_line + 1] = [indent + line for line in new]
    return "\n".join(lines)


def program_with(text: str) -> Program:
    program = program_of("")
    return Program([program.cells[0], type(program.cells[0])(2, None, text, text, "<cell 2>")])


@settings(max_examples=30, deadline=None)
@given(cells("x += w  # 1"))
def test_out_of_place(text: str) -> None:
    program = program_with(text)
    found = result(out_of_place(program, place_of(program, "x += w  # 1")))
    assert found == expected(text, "x += w  # 1", "x = x + w  # 1")


@settings(max_examples=30, deadline=None)
@given(cells("x[2:] = w"))
def test_functional_write(text: str) -> None:
    program = program_with(text)
    found = result(functional_write(program, place_of(program, "x[2:] = w")))
    assert found == expected(text, "x[2:] = w", "x = x.clone()", "x[2:] = w")


@settings(max_examples=30, deadline=None)
@given(cells("h = f(x)"))
def test_inserted_and_replaced(text: str) -> None:
    program = program_with(text)
    place = place_of(program, "h = f(x)")
    kept = requires_grad_after(program, place)
    cloned = clone_operand(program, place, "x")
    assert result(kept) == expected(text, "h = f(x)", "h = f(x)", "h.requires_grad_()")
    assert result(cloned) == expected(text, "h = f(x)", "h = f(x.clone())")
    both = merge(kept, cloned)
    assert both is None or "h = f(x.clone())\n" in both[0].new_source


@settings(max_examples=30, deadline=None)
@given(cells("w.add_(x)"))
def test_under_no_grad(text: str) -> None:
    program = program_with(text)
    place = place_of(program, "w.add_(x)")
    edits = under_no_grad(program, place)
    found = result(edits)
    assert found is not None
    compiled(found)
    kept = [line for line in found.split("\n") if line.strip() != "with torch.no_grad():"]
    assert [line.strip() for line in kept] == [line.strip() for line in text.split("\n")]
    edited = apply(program, edits)
    assert edited is not None
    inside = edited.place(place)
    assert inside is not None and inside.source == "w.add_(x)"
    assert under_no_grad(edited.program, inside) is None


@settings(max_examples=30, deadline=None)
@given(st.lists(PLAIN | MAGIC, min_size=1, max_size=6))
def test_a_move_loses_nothing(others: list[str]) -> None:
    text = "\n".join(["mark = new(1)  # mine", *others, "last = 0", ""])
    program = program_with(text)
    edits = move_after(program, at(program, "mark ="), at(program, "last = 0"))
    if edits is None:  # a magic in between may do anything
        assert any(o[0:1] in "%!" or o in ("v = !pwd", "f?") for o in others)
        return
    (moved,) = applied(program, edits)
    compiled(moved)
    lines = [line for line in moved.split("\n") if line.strip()]
    assert sorted(lines) == sorted(line for line in text.split("\n") if line.strip())
    assert lines[-1] == "mark = new(1)  # mine"
