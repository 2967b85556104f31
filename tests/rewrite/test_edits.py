"""Edits applied, followed and merged."""

from __future__ import annotations

from pathlib import Path

from rewriting import at, program_of, spot

from autograd_explain.model import Edit, Place
from autograd_explain.program import Program
from autograd_explain.rewrite.engine.edits import apply, merge, then
from autograd_explain.rewrite.transforms.clone import clone_before_write, clone_operand
from autograd_explain.rewrite.transforms.detach import detach_use
from autograd_explain.rewrite.transforms.grad_mode import under_no_grad
from autograd_explain.rewrite.transforms.move_statement import move_after
from autograd_explain.rewrite.transforms.out_of_place import out_of_place

CODE = "a = 1\nx += 1\ny = f(x)\nz = g(y)\n"


def new(edits: tuple[Edit, ...] | None) -> str:
    assert edits is not None
    (edit,) = edits
    return edit.new_source


def test_apply_gives_a_program_that_can_be_rewritten_again() -> None:
    program = program_of(CODE)
    edited = apply(program, out_of_place(program, at(program, "x +=")))
    assert edited is not None
    place = edited.place(at(program, "y ="))
    assert place is not None
    assert new(detach_use(edited.program, place, "x")) == CODE.replace(
        "x += 1", "x = x + 1"
    ).replace("f(x)", "f(x.detach())")
    assert program.cell(2) is not None and program.cell(2).text == CODE  # type: ignore[union-attr]


def test_apply_refuses_an_edit_of_another_text() -> None:
    program = program_of(CODE)
    assert apply(program, (Edit(2, None, "other", "new"),)) is None
    assert apply(program, None) is None


def test_places_are_followed() -> None:
    program = program_of(CODE)
    place = at(program, "x +=")
    edited = apply(program, under_no_grad(program, place))
    assert edited is not None
    inside, later = edited.place(place), edited.place(spot(program, "g(y)"))
    assert inside is not None and (inside.line, inside.source, inside.indent) == (3, "x += 1", 4)
    assert later is not None and later.line == 5
    assert later.span is not None and (later.span.line, later.span.column) == (5, 4)


def test_a_moved_line_is_found() -> None:
    program = program_of("p = 1\nq = 2\nr = 3\n")
    edited = apply(program, move_after(program, at(program, "p ="), at(program, "r =")))
    assert edited is not None
    place = edited.place(at(program, "p ="))
    assert place is not None and place.line == 3


def test_a_line_moved_to_another_cell_is_found() -> None:
    program = program_of("p = 1\nq = 2\n", "r = 3\n")
    edited = apply(program, move_after(program, at(program, "p ="), at(program, "r =")))
    assert edited is not None
    place = edited.place(at(program, "p ="))
    assert place is not None and (place.cell, place.line) == (3, 2)


def test_a_rewritten_line_is_found_and_its_span_dropped() -> None:
    program = program_of(CODE)
    edited = apply(program, out_of_place(program, at(program, "x +=")))
    assert edited is not None
    place = edited.place(spot(program, "x += 1"))
    assert place is not None and place.line == 2 and place.span is None


def test_then() -> None:
    program = program_of(CODE)
    first = out_of_place(program, at(program, "x +="))
    edits = then(program, first, lambda p, place: clone_operand(p, place, "y"), at(program, "z ="))
    assert new(edits) == "a = 1\nx = x + 1\ny = f(x)\nz = g(y.clone())\n"
    assert then(program, None, lambda p, place: None, at(program, "z =")) is None


def test_merge_of_separate_changes() -> None:
    program = program_of(CODE)
    first = out_of_place(program, at(program, "x +="))
    second = clone_operand(program, at(program, "z ="), "y")
    assert new(merge(first, second)) == "a = 1\nx = x + 1\ny = f(x)\nz = g(y.clone())\n"
    assert merge(first, first) == first
    assert merge(first, None) is None


def test_merge_of_changes_of_neighbouring_lines() -> None:
    old = "a = 1\nb = 2\n"
    first, second = ((Edit(2, None, old, n),) for n in ("a = 3\nb = 2\n", "a = 1\nb = 4\n"))
    assert new(merge(first, second)) == "a = 3\nb = 4\n"


def test_merge_refuses_two_changes_of_one_line() -> None:
    program = program_of(CODE)
    place = at(program, "z =")
    assert merge(clone_operand(program, place, "y"), detach_use(program, place, "y")) is None


def test_magics_survive_in_an_edited_program() -> None:
    program = program_of("%matplotlib inline\nx += 1\n!ls\ny = x * 2\n")
    edited = apply(program, out_of_place(program, at(program, "x +=")))
    assert edited is not None
    place = edited.place(at(program, "y ="))
    assert place is not None
    assert new(detach_use(edited.program, place, "x")) == (
        "%matplotlib inline\nx = x + 1\n!ls\ny = x.detach() * 2\n"
    )


def test_the_users_own_file(tmp_path: Path) -> None:
    path = tmp_path / "steps.py"
    path.write_text("import torch\n\ndef step(w, g):\n    w -= g  # now\n    return w\n")
    program = Program()
    place = Place(None, str(path), 4, "w -= g  # now")
    edits = under_no_grad(program, place)
    assert edits is not None
    assert edits[0].file == str(path) and edits[0].cell is None
    edited = apply(program, edits)
    assert edited is not None
    moved = edited.place(place)
    assert moved is not None and moved.line == 5
    assert clone_before_write(edited.program, moved) is not None
    assert path.read_text().count("no_grad") == 0


def test_library_code_is_left_alone() -> None:
    import torch

    place = Place(None, torch.optim.__file__, 1, "")
    assert out_of_place(Program(), place) is None
    assert under_no_grad(Program(), place) is None
