"""The graph beside the lines: lanes, and the rows that it adds."""

from __future__ import annotations

from dataclasses import replace

from autograd_explain.model import GraphLine, What
from autograd_explain.render.rails import WIDEST, as_text, rails_of

from .samples import NEEDS, SAVED, WRITE, drawn, explanation, finding, overwritten, place


def _drawn(numbers: list[int | None], inputs: list[tuple[int, ...]]) -> list[str]:
    return [as_text(rail, "o")[0].rstrip() for rail in rails_of(numbers, inputs)]


def test_a_chain_is_one_lane() -> None:
    assert _drawn([0, 1, 2], [(), (0,), (1,)]) == ["o", "o", "o"]
    assert [as_text(r, "o")[1].rstrip() for r in rails_of([0, 1], [(), (0,)])] == ["│", ""]


def test_a_value_that_is_used_twice_runs_past() -> None:
    assert _drawn([0, 1, 2], [(), (0,), (0, 1)]) == ["o", "├─o", "o─╯"]


def test_a_row_of_no_node_lets_lanes_pass() -> None:
    assert _drawn([0, None, 1], [(), (0,)]) == ["o", "│", "o"]


def test_a_node_that_nothing_leads_to_stands_aside() -> None:
    """The write: it is no part of the graph."""
    assert _drawn([0, 1, 2], [(), (), (0,)]) == ["o", "│ o", "o"]


def test_a_line_across_crosses_what_runs_down() -> None:
    assert _drawn([0, 1, 2, 3, 4], [(), (), (), (0, 2), (1, 3)])[3] == "o─┼─╯"


def test_more_lanes_than_can_be_read_are_not_drawn() -> None:
    many = WIDEST + 1
    assert rails_of(range(many + 1), [*[()] * many, tuple(range(many))]) == ()


def test_the_graphs_lines_stand_between_the_reports_own() -> None:
    text = drawn().to_text(80)
    sources = ["● ", "○   twice = out", "◆ hidden += 1", "both = out", "7 more lines", "loss = "]
    found = [text.index(source) for source in sources]
    assert found == sorted(found)
    assert "leaves `w, b`" in text and "passed 6 times" in text
    assert "version  ●" not in text and "version  ●" in overwritten().to_text(80)
    assert drawn().to_html().count("<svg") == 7


def test_of_a_shortened_graph_the_whole_one_is_offered() -> None:
    assert "7 more lines: `%autograd_graph loss`" in drawn().to_text()
    outside = replace(drawn().diagnosis, outside=True)
    assert "%autograd_graph" not in replace(drawn(), diagnosis=outside).to_text()


def test_an_order_that_contradicts_the_report_is_not_drawn() -> None:
    graph = (GraphLine(WRITE.place), GraphLine(SAVED.place, (0,)))
    shown = explanation(finding(SAVED, WRITE, NEEDS), graph=graph)
    assert shown.to_text(80) == explanation(finding(SAVED, WRITE, NEEDS)).to_text(80)


def test_a_failing_line_of_the_graph_is_the_last() -> None:
    last = place(3, 9, "out.sum().backward()")
    needs = replace(NEEDS, place=last)
    graph = (GraphLine(SAVED.place), GraphLine(WRITE.place), GraphLine(last, (0,)))
    text = explanation(finding(SAVED, WRITE, needs), graph=graph).to_text(80)
    assert text.count("out.sum().backward()") == 1
    assert "✗   out.sum().backward()" in text


def test_nothing_of_it_is_in_the_reports_contract() -> None:
    found = drawn().to_dict()
    assert [e["what"] for e in found["events"]] == [
        what.value for what in (What.SAVED, What.CHANGED, What.FAILED)
    ]
    assert found == overwritten().to_dict()
