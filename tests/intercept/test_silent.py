"""A watched session tells what went wrong although nothing was raised."""

from __future__ import annotations

import pytest
from knowledge.played import Played, captured, play, shell_with_extension

import autograd_explain
from autograd_explain.knowledge.entry import entries
from autograd_explain.model import Certainty, Kind, Outcome, What
from autograd_explain.render.explanation import Explanation
from autograd_explain.render.texts import load

#: A write through `.data` after the product has saved d: silently 1 instead of 4 for w2.
THROUGH_DATA = (
    "import torch\nx = torch.tensor([[1., 2.]])\n"
    "w1 = torch.tensor([[2.], [1.]], requires_grad=True)\n"
    "w2 = torch.tensor([3.], requires_grad=True)",
    "d = torch.matmul(x, w1)\nd_ = d.data\nf = torch.matmul(d, w2)\nd_[:] = 1\nf.backward()",
)


@pytest.fixture(scope="module")
def through_data() -> Played:
    return play(THROUGH_DATA, watched=True, verify=True)


def test_both_places_are_observed(through_data: Played) -> None:
    diagnosis = through_data.diagnosis
    assert diagnosis is not None and diagnosis.kind is Kind.SILENT and diagnosis.message == ""
    saved, changed = (diagnosis.finding.event(w) for w in (What.SAVED, What.CHANGED))
    assert saved is not None and changed is not None
    for event, line in ((saved, 3), (changed, 4)):
        assert event.place is not None and (event.place.cell, event.place.line) == (2, line)
        assert event.certainty is Certainty.OBSERVED
    assert diagnosis.finding.tensors[0].names[0] == "d"


def test_the_gradient_is_shown_beside_the_right_one(through_data: Played) -> None:
    diagnosis = through_data.diagnosis
    assert diagnosis is not None
    facts = diagnosis.finding.facts
    assert (facts["gradient"], facts["wrong"], facts["right"]) == ("w2.grad", "1", "4")
    texts = load(entries()["silent_overwrite"].folder)
    for language in ("en", "ja", "zh"):
        text = Explanation(diagnosis, language, "full", texts).to_markdown()
        assert "`w2.grad`" in text and "`4`" in text and "d_[:] = 1" in text


def test_the_rewrite_is_verified(through_data: Played) -> None:
    diagnosis = through_data.diagnosis
    assert diagnosis is not None and through_data.trouble == ""
    first = diagnosis.rewrites[0]
    assert (first.fix, first.outcome) == ("clone_alias", Outcome.VERIFIED)
    assert "d_ = d.detach().clone()" in first.edits[0].new_source


def test_what_may_be_meant_is_one_line() -> None:
    cells = (
        "import torch\nfrom torch import nn\nbody, head = nn.Linear(3, 3), nn.Linear(3, 1)\n"
        "opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)",
        "for _ in range(2):\n    with torch.no_grad():\n        h = body(torch.ones(1, 3))\n"
        "    opt.zero_grad()\n    head(h).sum().backward()\n    opt.step()",
    )
    found = play(cells, watched=True)
    assert found.diagnosis is None and found.trouble == ""
    assert [line for line in found.output.splitlines() if "worth a look" in line]


TRAINED = (
    "import torch\nfrom torch import nn\nhead = nn.Linear(4, 1)\ndef train(net, cut):\n"
    "    opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)\n"
    "    for _ in range(3):\n        opt.zero_grad()\n        h = net(torch.ones(2, 3))\n"
    "        if cut:\n            h = h.detach()\n        head(h).sum().backward()\n"
    "        opt.step()"
)
UNSEEN = "A model that lived only inside a function"


def test_a_cut_below_a_model_that_is_gone_is_told() -> None:
    found = play((TRAINED, "train(nn.Linear(3, 4), True)"), watched=True)
    assert found.trouble == "" and found.diagnosis is not None
    finding = found.diagnosis.finding
    cause = finding.event(What.CAUSE)
    assert (finding.cause, finding.facts["parameters"]) == ("silent_cut", "[4, 3], [4]")
    assert cause is not None and cause.place is not None and cause.place.line == 10


@pytest.mark.parametrize(
    ("cell", "unseen"),
    [
        ("def main():\n    train(nn.Linear(3, 4), False)\nmain()", True),
        (
            "def main():\n    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))\n"
            "    opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
            "    net(torch.ones(2, 3)).sum().backward()\n    opt.step()\nmain()",
            True,
        ),
        ("net = nn.Linear(3, 4)\ntrain(net, False)", False),
    ],
)
def test_a_checked_cell_ends_in_one_quiet_line(cell: str, unseen: bool) -> None:
    """Where the whole model was local it says what nobody could look at."""
    found = play((TRAINED, cell), watched=True)
    line = found.output.splitlines()[-1]
    assert found.diagnosis is None and found.trouble == "" and "nothing wrong" in line
    assert (UNSEEN in line) is unseen


def test_the_all_clear_names_what_this_torch_does_not_show(monkeypatch) -> None:
    from autograd_explain.record.detect import hidden_overwrites

    monkeypatch.setattr(hidden_overwrites, "_SHOWS_SAVED", False)
    monkeypatch.setattr(hidden_overwrites.Overwrites, "_saved", lambda self, node: iter(()))
    found = play(THROUGH_DATA, watched=True)
    assert "nothing wrong as far as it could see" in found.output
    assert "`.data` or NumPy were not looked for" in found.output


def test_the_all_clear_names_a_graph_that_was_not_searched(monkeypatch) -> None:
    from autograd_explain.record.detect import hidden_overwrites, unrecorded_writes

    for owner in (hidden_overwrites, unrecorded_writes):
        monkeypatch.setattr(owner, "_MAX_NODES", 0)
    cell = (
        "w = torch.ones(3, requires_grad=True)\nh = w * 2\nh.data.mul_(2)\n(h + 1).sum().backward()"
    )
    found = play(("import torch", cell), watched=True)
    assert "as far as it could see" in found.output and "to be searched" in found.output


SAVED = "import torch\nw = torch.randn({size}, requires_grad=True)\nloss = (w * w).sum()\n"
OTHERS = "for _ in range({rounds}):\n    (w[:1] * 2).sum().backward()\n"
ALTERED = "w.data.mul_(2)\nw.data.mul_(0.5)\n"


@pytest.mark.parametrize(
    ("start", "rest", "limit"),
    [
        (SAVED.format(size=3), "w.data.mul_(2)\n" + OTHERS.format(rounds=25), "are remembered"),
        (SAVED.format(size=3), "w.data.mul_(2)\n" + OTHERS.format(rounds=2), None),
        (SAVED.format(size="600, 600"), ALTERED, "only samples"),
        (SAVED.format(size="60, 60"), ALTERED, None),
    ],
)
def test_the_all_clear_names_what_was_forgotten_and_what_was_sampled(
    start: str, rest: str, limit: str | None
) -> None:
    """Without a limit nothing is said of one: it is found, or nothing is wrong."""
    output = play((start, rest + "loss.backward()"), watched=True).output
    assert ("as far as it could see" in output) is (limit is not None)
    assert limit is None or limit in output


def test_the_all_clear_names_writes_beyond_those_kept(monkeypatch) -> None:
    from autograd_explain.record.detect import hidden

    monkeypatch.setattr(hidden, "_MAX_WRITES", 2)
    cell = "for i in range(9):\n    w.data[i] = 2.0\nloss.backward()"
    output = play((SAVED.format(size=50), cell), watched=True).output
    assert "as far as it could see" in output and "are remembered" in output


SQUARE = """import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad
x = torch.rand(3, requires_grad=True)"""


@pytest.mark.parametrize(("answer", "told"), [(None, True), ((), False)])
def test_the_all_clear_says_that_the_cell_was_not_run_once_more(monkeypatch, answer, told) -> None:
    monkeypatch.setattr("autograd_explain.verification.ignored_gradients", lambda _: answer)
    found = play((SQUARE, "Square.apply(x).sum().backward()"), watched=True, verify=True)
    assert found.diagnosis is None and "nothing wrong" in found.output
    assert ("was not run once more" in found.output) is told


@pytest.mark.parametrize(("rounds", "told"), [(99, " 99 writes"), (500, "more than 100 writes")])
def test_more_writes_than_the_log_holds_are_not_counted_as_that_many(
    monkeypatch, rounds: int, told: str
) -> None:
    from autograd_explain.record.observe import event_log

    monkeypatch.setattr(event_log, "MAX_WRITES", 100)
    cells = "import torch\nx = torch.ones(3)", f"for _ in range({rounds}):\n    x.add_(1)"
    assert told in play(cells, watched=True).output


def test_what_is_worth_a_look_is_the_last_explanation_and_whole() -> None:
    long = "a_body_with_a_name_of_no_small_length"
    call = f"{long}(torch.ones(1, 3)) * torch.ones(1, 3) * torch.ones(1, 3) + torch.zeros(1, 3)"
    cells = (
        f"import torch\nfrom torch import nn\n{long}, head = nn.Linear(3, 3), nn.Linear(3, 1)\n"
        f"opt = torch.optim.SGD([*{long}.parameters(), *head.parameters()], lr=0.1)",
        f"for _ in range(2):\n    with torch.no_grad():\n        h = ({call}).float()\n"
        "    opt.zero_grad()\n    head(h).sum().backward()\n    opt.step()",
    )
    with shell_with_extension() as shell, captured() as output:
        shell.run_line_magic("autograd_check", "on --no-verify")
        for cell in cells:
            shell.run_cell(cell, store_history=True)
        last = autograd_explain.last()
    (line,) = [line for line in output.getvalue().splitlines() if "worth a look" in line]
    assert last is not None and line.endswith(" " + last.headline) and len(line) > 130
    told = last.to_dict()
    assert (told["id"], told["kind"], told["notes"]) == ("silent_cut", "note", [])
    assert told["events"][0]["place"]["line"] == 2


def test_an_alarm_has_the_notes_of_its_cell() -> None:
    cell = (
        "for _ in range(2):\n    with torch.no_grad():\n        h = body(torch.ones(1, 3))\n"
        "    g = torch.exp(h @ w)\n    loss = (g * g).sum() + head(h).sum()\n"
        "    g.data.mul_(2)\n    opt.zero_grad()\n    loss.backward()\n    opt.step()"
    )
    start = (
        "import torch\nfrom torch import nn\nbody, head = nn.Linear(3, 3), nn.Linear(3, 1)\n"
        "w = torch.randn(3, 2, requires_grad=True)\n"
        "opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)"
    )
    with shell_with_extension() as shell, captured():
        shell.run_line_magic("autograd_check", "on --no-verify")
        for text in (start, cell):
            shell.run_cell(text, store_history=True)
        last = autograd_explain.last()
    assert last is not None
    told = last.in_language("ja").to_dict()
    assert (told["id"], told["kind"]) == ("silent_overwrite", "silent")
    assert [(n["id"], n["kind"], n["language"]) for n in told["notes"]] == [
        ("silent_cut", "note", "ja")
    ]


def test_what_torch_warned_of_is_told_last() -> None:
    """Beside an alarm of the same cell; `%autograd_fix` goes by the last report."""
    cell = (
        "h = torch.exp(w)\nloss = (h * h).sum() + head.sum() + body.detach().square().sum()\n"
        "h.data.mul_(2)\nloss.backward()\nprint(h.grad)"
    )
    start = (
        "import torch\nw = torch.rand(3, requires_grad=True)\n"
        "head, body = torch.rand(2, 3, requires_grad=True)"
    )
    with shell_with_extension() as shell, captured() as shown:
        shell.run_line_magic("autograd_check", "on --no-verify")
        for text in (start, cell):
            shell.run_cell(text, store_history=True)
        last = autograd_explain.last()
    text = shown.getvalue()
    assert last is not None and last.to_dict()["id"] == "intermediate_grad"
    assert 0 < text.index("silent_overwrite ·") < text.index("intermediate_grad ·")


@pytest.mark.filterwarnings("always:None of the inputs")
def test_a_warning_that_offers_a_rewrite_tells_what_came_of_it() -> None:
    """Each block of a loop is looked at, so that the optimizer is not told to hold others."""
    start = (
        "import torch\nfrom torch import nn\nfrom torch.utils.checkpoint import checkpoint\n"
        "blocks = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))\n"
        "norm, head = nn.LayerNorm(3), nn.Linear(3, 1)\n"
        "opt = torch.optim.SGD([*blocks.parameters(), *head.parameters()], lr=0.1)"
    )
    cell = (
        "for _ in range(2):\n    x = torch.rand(4, 3)\n    for block in blocks:\n"
        "        x = checkpoint(block, x, use_reentrant=True)\n"
        "    loss = head(norm(x)).square().mean()\n"
        "    opt.zero_grad()\n    loss.backward()\n    opt.step()"
    )
    with shell_with_extension() as shell, captured() as shown:
        shell.run_line_magic("autograd_check", "on")
        for text in (start, cell):
            shell.run_cell(text, store_history=True)
        last = autograd_explain.last()
    assert last is not None and last.to_dict()["id"] == "checkpoint_without_gradient"
    assert shown.getvalue().count("autograd_explain ·") == 1
    assert "use_reentrant=False" in last.to_dict()["rewrites"][0]["edits"][0]["new_source"]


def test_a_hook_of_a_timed_cell_is_told_at_its_line() -> None:
    """The line that its code says is one of the cell's body, not of the cell."""
    hook = "%%time\nseen = {}\ndef keep(module, inputs, output):\n    seen[0] = output"
    cells = (
        "import torch\nfrom torch import nn",
        hook,
        "net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 1))\n"
        "net[0].register_forward_hook(keep)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)",
        "loss = net(torch.rand(6, 4)).square().mean() + seen[0].square().mean()\n"
        "loss.backward()\nopt.step()",
    )
    diagnosis = play(cells, watched=True).diagnosis
    cause = None if diagnosis is None else diagnosis.finding.place(What.CAUSE)
    assert cause is not None and (cause.cell, cause.line) == (2, 4)
    assert cause.source == "seen[0] = output"
