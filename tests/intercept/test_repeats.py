"""The same failure again is a line with a count, and what is not the same is told whole."""

from types import SimpleNamespace

import pytest

from autograd_explain.intercept.repeats import _stands
from autograd_explain.render.html import style

WRONG = "h = w.exp()\nh += 1\nh.sum().backward()"


@pytest.fixture
def told(run, capsys, monkeypatch):
    """What a cell prints; the session neither watches again nor is it a kernel."""
    run("import torch; w = torch.ones(2, requires_grad=True)")
    run("%config AutogradExplain.record_next_run = False")

    def tell(text):
        capsys.readouterr()
        run(text)
        return " ".join(capsys.readouterr().out.split("autograd_explain", 1)[-1].split())

    return tell


def test_a_line_that_counts(told, session):
    first = told(WRONG)
    assert "overwritten" in first and "Rewrite" in first
    report = session.last
    for count in ("2nd", "3rd"):
        line = told(WRONG)
        assert "Rewrite" not in line and "`h` was overwritten" in line
        assert f"{count} time: its report stands under In[3]" in line
    assert session.last.id == report.id and "Rewrite" in told("%autograd_explain")


@pytest.mark.parametrize(
    "change",
    [
        "w = torch.ones(3, requires_grad=True)",
        "%config AutogradExplain.language = 'ja'",
        "%config AutogradExplain.repeats = 'full'",
    ],
)
def test_what_changed_is_told_whole(told, change):
    whole = told(WRONG)
    told(change)
    assert len(told(WRONG)) > 0.6 * len(whole)


def test_another_text_is_another_failure(told):
    told(WRONG)
    assert "Rewrite" in told(WRONG.replace("1", "2"))


def test_where_a_report_can_still_be_read():
    first, again, other = (
        SimpleNamespace(number=n, cell_id=i) for n, i in ((1, "a"), (2, "a"), (3, "b"))
    )
    assert _stands(first, other, [first, other], True) == 1
    assert _stands(first, again, [first, again], True) is None
    assert _stands(first, other, [first, again, other], True) is None
    assert _stands(first, again, [first, again], False) == 1
    assert _stands(first, None, [first], True) is None


def test_in_a_notebook_the_report_is_folded_under_the_line(told, session):
    from autograd_explain.render.repeated import Repeated

    told(WRONG)
    folded = Repeated(session.last, 12).to_html()
    assert folded.startswith("<details") and "12th time" in folded and "h += " in folded
    line = Repeated(session.last, 2, 3).to_html()
    assert "In[3]" in line and style() not in line and len(line) < 400
    assert "2nd time" in Repeated(session.last, 2, 3).to_markdown()
