"""Outcomes, cause by cause, with real processes."""

from dataclasses import replace

import pytest

from autograd_explain.model import Edit, Outcome, Safety
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.verification import Reference, reference_gradients, verify

MODEL = """
import torch
from torch import nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
    def forward(self, x):
        out = torch.sigmoid(self.lin(x))
        out += x
        return out
"""
USE = """
net = Block()
x = torch.randn(4, 3)
loss = net(x).sum()
loss.backward()
"""
SAME_CELL = """
import torch
torch.manual_seed(0)
w = torch.randn(5, requires_grad=True)
y = w.exp()
y.mul_(2)
loss = y.sum()
loss.backward()
"""


def test_a_correct_rewrite_of_the_failing_cell_is_verified(play):
    rewrite = play(SAME_CELL).try_out(("y.mul_(2)", "y = y.mul(2)"))
    assert rewrite.outcome is Outcome.VERIFIED
    assert rewrite.comparison.compared == ("w.grad",)
    assert rewrite.comparison.worst < 1e-6
    assert rewrite.reason.key == "agrees"


@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_rewrite_of_an_earlier_cell_is_replayed_from_the_start(play, checkpoint):
    rewrite = play(MODEL, USE, checkpoint=checkpoint).try_out(("out += x", "out = out + x"))
    assert rewrite.outcome is Outcome.VERIFIED
    assert set(rewrite.comparison.compared) == {"net.lin.weight.grad", "net.lin.bias.grad"}


@pytest.mark.parametrize(
    "new",
    [
        "y = y.detach().mul(2).requires_grad_()",  # the graph is cut
        "y = y.mul(3)",
        "y.data.mul_(2)",  # damages what exp saved, and gets the same gradient by accident
        "y = y * 2 + 0 * w",
    ],
)
def test_what_only_silences_or_changes_the_meaning_differs(play, new):
    rewrite = play(SAME_CELL).try_out(("y.mul_(2)", new))
    expected = Outcome.VERIFIED if "0 * w" in new else Outcome.DIFFERS
    assert rewrite.outcome is expected


def test_swallowing_the_error_differs(play):
    swallow = "try:\n    loss.backward()\nexcept RuntimeError:\n    pass"
    assert play(SAME_CELL).try_out(("loss.backward()", swallow)).outcome is Outcome.DIFFERS


def test_the_same_gradient_with_another_value_differs(play):
    rewrite = play(SAME_CELL).try_out(("y.mul_(2)", "y = y.mul(2) + 1"))
    assert rewrite.outcome is Outcome.DIFFERS
    assert "loss" in rewrite.comparison.differing and "w.grad" not in rewrite.comparison.differing


@pytest.mark.parametrize(
    ("emptied", "outcome"),
    [
        ("total = None", Outcome.DIFFERS),
        ("kept['y'] = None", Outcome.DIFFERS),
        ("kept['count'] = None", Outcome.DIFFERS),
        ("net.bias = None", Outcome.DIFFERS),
        ("del total, kept['y']", Outcome.VERIFIED),
    ],
)
def test_what_is_none_where_there_was_a_value_differs(play, emptied, outcome):
    """A name that is gone may have held what is needed no more."""
    cell = """
import torch
w = torch.ones(3, requires_grad=True)
net = torch.nn.Linear(1, 1)
total = w.detach().sum()
kept = {"y": w.detach() + 1, "count": 3}
y = w.exp()
y.mul_(2)
y.sum().backward()
"""
    assert play(cell).try_out(("y.mul_(2)", f"y = y.mul(2)\n{emptied}")).outcome is outcome


def test_a_chain_of_errors_is_followed(play):
    rewrite = play(SAME_CELL).try_out(("y.mul_(2)", "y = y.mul(2)\nw += 1"))
    assert rewrite.outcome is Outcome.FAILS
    assert "leaf Variable" in rewrite.reason.values["error"]
    assert rewrite.reason.values["line"] == "7"


def test_a_rewrite_that_does_not_parse_fails(play):
    rewrite = play(SAME_CELL).try_out(("y.mul_(2)", "y = = 2"))
    assert rewrite.outcome is Outcome.FAILS and "SyntaxError" in rewrite.reason.values["error"]


def test_the_order_is_verified_runs_not_tried_and_failures_are_left_out(play):
    played = play(SAME_CELL)
    proposals = [
        Proposal("sketch", played.proposal(("y.mul_(2)", "...")).edits, Safety.SHOW_ONLY),
        played.proposal(("y.mul_(2)", "y = y.mul(3)")),
        played.proposal(("y.mul_(2)", "raise ValueError")),
        played.proposal(("y.mul_(2)", "y = y.mul(4)"), intended=True),
        played.proposal(("y.mul_(2)", "y = y * 2")),
    ]
    rewrites = verify(proposals, played.request())
    assert [r.outcome for r in rewrites] == [
        Outcome.VERIFIED,
        Outcome.DIFFERS,
        Outcome.NOT_TRIED,
    ]
    assert rewrites[2].reason.key == "show_only"
    assert len(verify(proposals, played.request(), keep_all=True)) == 5


def test_cut_graphs_have_no_reference(play):
    played = play(
        "import torch\nw = torch.ones(3, requires_grad=True)\ny = w.detach() * 2\n"
        "y.sum().backward()"
    )
    rewrite = played.try_out(("w.detach()", "w"))
    assert rewrite.outcome is Outcome.RUNS
    assert rewrite.reason.values["why"] == "no_reference"


TWICE = """
import torch
w = torch.full((3,), 2.0, requires_grad=True)
loss = w.pow(3).sum()
loss.backward()
loss.backward()
"""


def test_a_second_backward_is_compared_with_retained_graphs(play):
    played = play(TWICE)
    first = (
        "loss.backward()\nloss.backward()",
        "loss.backward(retain_graph=True)\nloss.backward()",
    )
    assert played.try_out(first).outcome is Outcome.VERIFIED
    once = ("loss.backward()\nloss.backward()", "loss.backward()")
    assert played.try_out(once).outcome is Outcome.DIFFERS


def test_a_write_between_two_backwards_leaves_no_reference(play):
    played = play(
        """
import torch
w = torch.full((3,), 2.0, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
loss = w.pow(3).sum()
for _ in range(2):
    loss.backward()
    opt.step()
"""
    )
    again = ("    loss.backward()", "    loss = w.pow(3).sum()\n    loss.backward()")
    rewrite = played.try_out(again)
    assert rewrite.outcome is Outcome.RUNS
    assert rewrite.reason.values["why"] == "overwritten_between"
    retained = played.try_out(("    loss.backward()", "    loss.backward(retain_graph=True)"))
    assert retained.outcome is Outcome.FAILS


def test_the_write_may_also_be_silent_between_two_backwards(play):
    played = play(TWICE.replace("loss.backward()\nloss", "loss.backward()\nw.data.add_(1)\nloss"))
    rewrite = played.try_out(("loss.backward()\nw", "loss.backward(retain_graph=True)\nw"))
    assert rewrite.outcome is Outcome.RUNS


DATA = """
import torch
x = torch.tensor([[1.0, 0.0]])
w1 = torch.tensor([[1.0], [1.0]], requires_grad=True)
w2 = torch.tensor([[2.0]], requires_grad=True)
d = x @ w1 + 3
f = (d @ w2).sum()
d.data[:] = 1
f.backward()
"""


def test_silent_overwrites_show_both_gradients(play):
    played = play(DATA)
    (difference,) = reference_gradients(played.request())
    assert (difference.name, difference.plain, difference.reference) == ("w2.grad", "1", "4")
    moved = ("d.data[:] = 1\nf.backward()", "f.backward()\nd.data[:] = 1")
    assert played.try_out(moved).outcome is Outcome.VERIFIED
    assert played.try_out(("d.data", "d.detach()")).outcome is Outcome.FAILS


def test_no_difference_where_the_gradient_is_right(play):
    played = play(DATA.replace("d.data[:] = 1\n", ""))
    assert reference_gradients(played.request()) == ()


def test_numpy_memory_overwritten_after_the_forward(play):
    played = play(
        """
import numpy as np, torch
buffer = np.ones(3, dtype=np.float32)
w = torch.ones(3, requires_grad=True)
loss = (w * torch.from_numpy(buffer)).sum()
buffer[:] = 7
loss.backward()
"""
    )
    (difference,) = reference_gradients(played.request())
    assert (difference.plain, difference.reference) == ("7", "1")
    assert played.try_out(("(buffer)", "(buffer.copy())")).outcome is Outcome.VERIFIED


def test_a_tensor_that_keeps_its_value_is_no_difference(play):
    """`prob.detach()` was overwritten by a metric; the repair clones, so `prob` keeps its value."""
    played = play(
        """
import torch
w = torch.tensor([0.3, -0.2], requires_grad=True)
prob = torch.sigmoid(w)
loss = (prob * prob).sum()
hard = prob.detach()
hard[hard < 0.5] = 0
hard[hard >= 0.5] = 1
loss.backward()
"""
    )
    rewrite = played.try_out(("prob.detach()", "prob.detach().clone()"))
    assert rewrite.outcome is Outcome.VERIFIED
    assert rewrite.reason.values["kept"] == "prob"


def test_a_value_that_later_code_used_must_be_the_written_one(play):
    played = play(
        """
import torch
w = torch.tensor([0.3, -0.2], requires_grad=True)
prob = torch.sigmoid(w)
loss = (prob * prob).sum()
hard = prob.detach()
hard[:] = 1
total = prob.sum().item()
loss.backward()
"""
    )
    assert played.try_out(("prob.detach()", "prob.detach().clone()")).outcome is Outcome.DIFFERS


RECURRENT = """
import torch
torch.manual_seed(0)
cell = torch.nn.RNNCell(2, 3)
obs = torch.randn(3, 2, 2)
h, total = torch.zeros(2, 3), 0.0
for step in range(3):
    h = cell(obs[step], h)
    total = total + h.pow(2).mean()
    h.data[0] = 0.0
total.backward()
"""


def test_a_hidden_write_that_the_forward_goes_on_with_is_tracked(play):
    played = play(RECURRENT)
    mask = "h = h * torch.tensor([[0.0], [1.0]])"
    assert played.try_out(("h.data[0] = 0.0", mask)).outcome is Outcome.VERIFIED
    straight = "h = h + (h.detach() * torch.tensor([[-1.0], [0.0]]))"
    assert played.try_out(("h.data[0] = 0.0", straight)).outcome is Outcome.RUNS


def test_zero_gradients_prove_nothing(play):
    played = play(SAME_CELL.replace("loss = y.sum()", "loss = (y * 0).sum()"))
    rewrite = played.try_out(("y.mul_(2)", "y = y.mul(2)"))
    assert rewrite.outcome is Outcome.RUNS
    assert rewrite.reason.values["why"] == "zero_gradients"


def test_cleared_gradients_are_compared_as_the_backward_left_them(play):
    played = play(SAME_CELL + "w.grad = None\n")
    assert played.try_out(("y.mul_(2)", "y = y.mul(2)")).outcome is Outcome.VERIFIED
    assert played.try_out(("y.mul_(2)", "y = y.mul(2.5)")).outcome is Outcome.DIFFERS


def test_a_model_that_only_a_function_knows(play):
    body = SAME_CELL.strip().replace("\n", "\n    ")
    played = play(f"def main():\n    {body}\nmain()\n")
    rewrite = played.try_out(("y.mul_(2)", "y = y.mul(2)"))
    assert rewrite.outcome is Outcome.VERIFIED and rewrite.comparison.compared == ("w.grad",)
    assert played.try_out(("y.mul_(2)", "y = y.mul(5)")).outcome is Outcome.DIFFERS


def test_a_step_that_uses_nothing_differs_where_only_a_function_knows_the_model(play):
    cell = """
import torch
def train():
    torch.manual_seed(0)
    net = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    y = net(torch.ones(1, 2)).exp()
    y.mul_(2)
    y.sum().backward()
    optimizer.step()
train()
"""
    played = play(cell)
    assert played.try_out(("y.mul_(2)", "y = y.mul(2)")).outcome is Outcome.VERIFIED
    early = (
        ("y.mul_(2)", "y = y.mul(2); optimizer.step()"),
        ("backward()\n    optimizer.step()", "backward()"),
    )
    assert played.try_out(*early).outcome is Outcome.DIFFERS


def test_gradients_of_autograd_grad_are_compared(play):
    text = SAME_CELL.replace("loss.backward()", "(g,) = torch.autograd.grad(loss, w)")
    assert play(text).try_out(("y.mul_(2)", "y = y.mul(2)")).outcome is Outcome.VERIFIED


def test_nondeterministic_gradients_are_not_verified(play):
    seeded = "import os\ntorch.manual_seed(int.from_bytes(os.urandom(6), 'big'))\nw = "
    played = play(SAME_CELL.replace("w = ", seeded))
    rewrite = played.try_out(("y.mul_(2)", "y = y.mul(2)"))
    assert rewrite.outcome is Outcome.RUNS
    assert rewrite.reason.values["why"] == "nondeterministic"


def test_values_that_change_by_themselves_are_left_out(play):
    played = play("import time\n" + SAME_CELL + "at = time.perf_counter()\n")
    assert played.try_out(("y.mul_(2)", "y = y.mul(2)")).outcome is Outcome.VERIFIED


def test_unseeded_programs_draw_the_same_numbers_in_every_replay(play):
    text = SAME_CELL.replace("torch.manual_seed(0)", "import random\nscale = random.random()")
    assert play(text).try_out(("y.mul_(2)", "y = y.mul(2)")).outcome is Outcome.VERIFIED
    assert (
        play("1", text, checkpoint=False).try_out(("y.mul_(2)", "y = y.mul(2)")).outcome
        is Outcome.VERIFIED
    )


GRAPH_BEFORE = ["import torch\nw = torch.ones(3, requires_grad=True)\ny = w.exp()", "y.mul_(2)"]


def test_a_graph_of_an_earlier_cell_is_replayed_from_the_start(play):
    played = play(*GRAPH_BEFORE, "y.sum().backward()")
    rewrite = played.try_out(("y.sum().backward()", "w.exp().mul(2).sum().backward()"))
    assert rewrite.outcome is Outcome.VERIFIED


def test_a_graph_of_an_earlier_cell_without_its_cells_is_no_reference(play):
    """The first cell cannot run again, so nobody knows whether the graph was damaged in it."""
    played = play(
        "import torch, os\nassert not os.environ.get('SEEN')\n"
        "w = torch.ones(3, requires_grad=True)\ny = w.exp()\nz = y * 3",
        "y.mul_(2)\nz.sum().backward()",
    )
    import os

    os.environ["SEEN"] = "1"
    try:
        rewrite = played.try_out(("y.mul_(2)", "y = y * 2"))
    finally:
        del os.environ["SEEN"]
    assert rewrite.outcome is not Outcome.VERIFIED


CHECKPOINTED = """
import torch
from torch.utils.checkpoint import checkpoint
w = torch.ones(3, requires_grad=True)
h = checkpoint(torch.exp, w, use_reentrant=False)
y = h.exp()
y.mul_(2)
y.sum().backward()
"""


def test_what_checkpointed_functions_save_is_kept_for_the_reference(play):
    rewrite = play(CHECKPOINTED).try_out(("y.mul_(2)", "y = y.mul(2)"))
    assert rewrite.outcome is Outcome.VERIFIED


def test_reentrant_checkpoints_give_no_reference(play):
    rewrite = play(CHECKPOINTED.replace("False", "True")).try_out(("y.mul_(2)", "y = y.mul(2)"))
    assert rewrite.outcome is Outcome.RUNS and rewrite.reason.values["why"] == "recomputed"


COUNTED = """
import torch
from torch.utils.checkpoint import checkpoint
w, runs = torch.rand(3, requires_grad=True), []
def body(x):
    runs.append(0)
    return x.sin() * x if len(runs) % 2 else x.exp()
checkpoint(body, w, use_reentrant=False).sum().backward()
"""


def test_a_checkpointed_function_is_held_to_what_its_first_run_did(play):
    played = play(COUNTED)
    assert played.request().reference is Reference.KEPT_CHECKPOINTS
    before = ("    runs.append(0)\n", ""), ("checkpoint(body", "runs.append(0)\ncheckpoint(body")
    assert played.try_out(*before).outcome is Outcome.VERIFIED
    assert played.try_out(*before, ("x.sin() * x", "x.exp()")).outcome is Outcome.DIFFERS


def test_a_warning_must_be_gone(play):
    played = play(
        "import torch\nw = torch.ones(2, requires_grad=True)\nv = w.double()\n"
        "v.sum().backward()\nprint(v.grad)"
    )
    assert played.warned
    assert played.request().reference is Reference.RETAINED_GRADIENTS
    assert played.try_out(("v.sum()", "v.retain_grad()\nv.sum()")).outcome is Outcome.VERIFIED
    assert played.try_out(("print(v.grad)", "print(v.grad is None)")).outcome is Outcome.FAILS


def test_a_program_that_goes_wrong_otherwise_in_the_replay_is_not_tried(play):
    played = play(SAME_CELL)
    rewrite = played.try_out(("y.mul_(2)", "y = y.mul(2)"), message="another error")
    assert rewrite.outcome is Outcome.NOT_TRIED and rewrite.reason.key == "not_replayable"


def test_cells_that_had_failed_before_may_fail_again(play):
    played = play("import torch", "1 / 0 if False else None", SAME_CELL)
    failing = played.notebook.cells[1]
    played.notebook.cells[1] = replace(failing, text="undefined_name", python="undefined_name")
    edit = ("y.mul_(2)", "y = y.mul(2)")
    without = played.try_out(edit, checkpoint=None)
    assert without.outcome is Outcome.NOT_TRIED
    again = played.try_out(edit, checkpoint=None, failed=frozenset({2, 3}))
    assert again.outcome is Outcome.VERIFIED


def test_edits_of_cells_that_are_not_recorded_are_not_tried(play):
    played = play(SAME_CELL)
    proposal = Proposal("fix", (Edit(77, None, "a", "b"),))
    (rewrite,) = verify([proposal], played.request())
    assert rewrite.outcome is Outcome.NOT_TRIED


def test_the_users_own_file_may_be_edited(play, tmp_path, monkeypatch):
    path = tmp_path / "own_layers.py"
    path.write_text("def double(y):\n    y.mul_(2)\n    return y\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    played = play(
        "import torch\nfrom own_layers import double",
        "w = torch.ones(3, requires_grad=True)\ny = double(w.exp())\ny.sum().backward()",
    )
    text = path.read_text()
    edit = Edit(None, str(path), text, text.replace("y.mul_(2)", "y = y.mul(2)"))
    (rewrite,) = verify([Proposal("fix", (edit,))], played.request())
    assert rewrite.outcome is Outcome.VERIFIED
    assert path.read_text() == text
    assert {p.name for p in tmp_path.iterdir()} <= {"own_layers.py", "__pycache__"}


def test_grad_mode_left_off_by_the_session_does_not_reach_the_replay(play):
    played = play(
        "import torch\nw = torch.ones(3, requires_grad=True)",
        "torch.set_grad_enabled(False)\nloss = w.sum()\nloss.backward()",
    )
    rewrite = played.try_out(("torch.set_grad_enabled(False)\n", ""))
    assert rewrite.outcome is Outcome.RUNS


def test_the_session_is_untouched(play):
    import torch

    played = play(SAME_CELL)
    state = torch.get_rng_state()
    before = played.namespace["w"].clone(), played.namespace["y"]._version
    played.try_out(("y.mul_(2)", "y = y.mul(2)\nw.data.zero_()"))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(played.namespace["w"], before[0])
    assert played.namespace["y"]._version == before[1] and played.namespace["w"].grad is None


ORDER = """
import torch
torch.manual_seed(0)
critic, actor = torch.nn.Linear(2, 1), torch.nn.Linear(2, 2)
nets = {"critic": critic, "actor": actor}
optims = {k: torch.optim.SGD(n.parameters(), lr=0.1) for k, n in nets.items()}
x = torch.randn(4, 2)
losses = {"critic": critic(x).pow(2).mean(), "actor": -critic(actor(x)).mean()}
for name in ["critic", "actor"]:
    optims[name].zero_grad()
    losses[name].backward()
    optims[name].step()
"""


def test_leftover_gradients_of_another_order_are_no_difference_of_the_updates(play):
    """Every update agrees; only what remains in `.grad` does not: it runs, and is kept."""
    played = play(ORDER)
    rewrite = played.try_out(('["critic", "actor"]', '["actor", "critic"]'))
    assert rewrite.outcome is Outcome.RUNS
    assert rewrite.reason.values["why"] == "leftovers"
    assert "critic.weight.grad" in rewrite.comparison.differing
    wrong = ('["critic", "actor"]', '["actor", "critic"]'), ("-critic(", "-2 * critic(")
    assert played.try_out(*wrong).outcome is Outcome.DIFFERS


def test_what_corrects_the_program_goes_before_what_agrees_with_it(play):
    played = play(SAME_CELL)
    agrees = played.proposal(("y.mul_(2)", "y = y * 2"))
    corrects = played.proposal(("y.mul_(2)", "y = y.mul(3)"))
    other = replace(corrects, corrects=True)
    rewrites = verify([agrees, other], played.request())
    assert [r.outcome for r in rewrites] == [Outcome.DIFFERS, Outcome.RUNS]
    assert rewrites[0].reason.key == "differs_for_caller"
    assert rewrites[1].reason.values["why"] == "ambiguous"
    assert [r.outcome for r in verify([agrees, corrects], played.request())] == [Outcome.VERIFIED]


CUT = """
import time
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
loss = net(torch.ones(2, 3)).mean()
loss = torch.tensor([loss.item()], requires_grad=True)
loss.backward()
"""


@pytest.mark.parametrize(
    ("new", "name", "outcome", "reason"),
    [
        ("torch.stack([loss])", "net.weight", Outcome.RUNS, "reached"),
        ("torch.tensor([float(loss)], requires_grad=True)", "net.weight", Outcome.FAILS, "still"),
        ("torch.stack([loss])", "gone.weight", Outcome.RUNS, "no_reference"),
        # Zeros that the loss follows, and such of which it is independent.
        ("loss.detach() + 0 * loss", "net.weight", Outcome.FAILS, "only_zeros"),
        ("torch.stack([(loss + 9).relu() * 0])", "net.weight", Outcome.RUNS, "no_reference"),
        # What the loss follows by chance alone is not told.
        (
            "loss.detach() * torch.tensor(time.time_ns() % 997.0) + 0 * loss",
            "net.weight",
            Outcome.RUNS,
            "no_reference",
        ),
    ],
)
def test_a_rewrite_has_to_give_the_gradient_that_is_missing(play, new, name, outcome, reason):
    played = play(CUT)
    change = ("torch.tensor([loss.item()], requires_grad=True)", new)
    rewrite = played.try_out(change, reference=Reference.NONE, awaited=(name,))
    assert rewrite.outcome is outcome and rewrite.reason.key.startswith(reason)


def test_a_gradient_that_no_run_keeps_confirms_nothing(play):
    """The warning is gone as well where the tensor that is asked is one without a gradient."""
    made = "import torch\nx = torch.ones(2, requires_grad=True)\nk, c = x.exp()\n"
    played = play(f"{made}(k * c).backward()", "seen = {n: t.grad for n, t in (('k', k),)}")
    kept = played.try_out(("exp()\n", "exp()\nk.retain_grad()\n"))
    assert kept.outcome is Outcome.VERIFIED
    cut = played.try_out(("t.grad", "t.detach().grad"))
    assert cut.outcome is Outcome.DIFFERS  # asked of the program as a whole
