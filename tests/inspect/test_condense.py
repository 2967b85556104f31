"""Rows of a graph: what repeats stands once, whatever its size."""

from __future__ import annotations

from autograd_explain.inspect.live.condense import (
    GraphRow,
    Operation,
    Overwritten,
    condense,
)


def row(name: str, *inputs: int, leaf: str = "", result: str = "") -> GraphRow:
    results = (result,) if result else ()
    return GraphRow((Operation(name, results),), (leaf,) if leaf else (), inputs)


def shown(*rows: GraphRow) -> list[str]:
    """`2x3` before two rows that come three times; `Mul*3 w0…2 <0` for a row with its inputs."""
    return [_shown(r) for r in condense(rows)]


def _shown(r: GraphRow) -> str:
    if r.repeats:
        return f"{r.repeats}x{r.times}"
    names = "".join(o.name for o in r.operations) or f"…{r.left_out}"
    times = f"*{r.times}" if r.times > 1 else ""
    below = f" <{','.join(map(str, r.inputs))}" if r.inputs else ""
    return f"{names}{times}{''.join(f' {leaf}' for leaf in r.leaves)}{below}"


def test_layers_are_one_row() -> None:
    layers = [row("Addmm", *([n - 1] if n else []), leaf=f"net[{n}].weight") for n in range(12)]
    # The first has no input, and so is no layer like the others.
    assert shown(*layers) == ["Addmm net[0].weight", "Addmm*11 net[1…11].weight <0"]


def test_blocks_of_several_rows_and_blocks_of_blocks() -> None:
    rows = [row("Exp")]
    for block in range(5):
        for step in range(3):
            rows.append(row("Mul", len(rows) - 1, leaf=f"w{block}{step}"))
            rows.append(row("Add", len(rows) - 1))
        rows.append(row("Norm", len(rows) - 1))
    found = shown(*rows)
    assert found == ["Exp", "4x5", "2x3", "Mul w00…42 <0", "Add <3", "Norm <4"]


def test_a_residual_and_a_mask_are_no_obstacle() -> None:
    rows = [row("Exp"), row("Mask")]
    for _ in range(4):
        start = len(rows) - 1 if len(rows) > 2 else 0
        rows.append(row("Mul", *sorted({1, start})))
        rows.append(row("Add", start, len(rows) - 1))
    assert shown(*rows)[-3:] == ["2x3", "Mul <1,3", "Add <3,5"]


def test_which_repetition_a_name_is_of() -> None:
    rows = [row("Exp"), *(row("Mul", n) for n in range(3)), row("Mul", 3, result="x")]
    assert condense(rows)[-1].operations[0].results == ("x 4/4",)


def test_a_marked_row_stands_for_itself() -> None:
    wrong = GraphRow((Operation("Mul"),), inputs=(4,), overwritten=(Overwritten("self", 0, 1),))
    rows = [row("Exp"), *(row("Mul", n) for n in range(4)), wrong, row("Mul", 5), row("Mul", 6)]
    assert shown(*rows) == ["Exp", "Mul*4 <0", "Mul <1", "Mul*2 <2"]


def test_what_does_not_repeat_is_shortened_and_marks_stay() -> None:
    rows = [
        row(f"Op{n}x{n * 7919 % 101}" + "y" * (n % 13), *([n - 1] if n else []))
        for n in range(1000)
    ]
    marked = GraphRow(rows[500].operations, inputs=(499,), asked=True)
    rows[500] = marked
    found = condense(rows, most=20)
    assert len(found) == 23 and marked.operations in [r.operations for r in found]
    assert sum(r.left_out or 1 for r in found) == 1000
    assert all(i < n for n, r in enumerate(found) for i in r.inputs)
