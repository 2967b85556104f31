"""`%autograd_inspect` and `%autograd_graph`: facts of living tensors, read without harm."""

import gc
import re
import time
import warnings
import weakref

import pytest
import torch

SETUP = """\
import torch
w = torch.ones(2, 3, requires_grad=True)
x = w * 2
row = x[0]
y = torch.sigmoid(x)
loss = (y * 3).sum() + x.sum()
outs = [x]"""


@pytest.fixture
def shown(run, capsys):
    """What a line prints, errors included."""

    def show(line):
        capsys.readouterr()
        run(line)
        return "".join(capsys.readouterr())

    return show


# Tensors


def test_a_leaf_a_result_and_a_view(run, shown):
    run(SETUP)
    out = shown("%autograd_inspect w x row outs[0]").splitlines()
    assert "w: float32 [2, 3] cpu" in out  # no room for a table
    assert "  leaf · requires grad · version 0 · .grad is None" in out
    assert "  result of MulBackward0 · requires grad · version 0" in out
    assert "  view of x, outs[0]" in out
    assert "outs[0]: float32 [2, 3] cpu" in out
    assert "○ `x, outs[0]` version 0" in out and "○ `row` version 0; view of `x`" in out
    assert "All of them share a version counter." in out


def test_a_table_where_there_is_room(run, shown):
    run(SETUP + "\nloss.backward()")
    out = shown("%autograd_inspect w").splitlines()
    assert out[1].split() == ["tensor", "type", "to", "autograd", "version", ".grad"]
    assert out[2].startswith("w ") and out[2].endswith("0        [2, 3]")


def test_a_view_written_in_place_is_not_asked(run, shown, shell):
    """Reading its grad_fn would rebuild it: the view's node is the same afterwards."""
    run(SETUP + "\nrow.mul_(2)\nbase_fn = x.grad_fn")
    assert "its grad_fn is not read" in shown("%autograd_inspect row")
    assert shell.user_ns["x"].grad_fn is shell.user_ns["base_fn"]
    for line in ("%autograd_graph row", "%autograd_graph loss --around row"):
        assert "is a view that was written in place" in shown(line)
    assert "ask for its base, x" in shown("%autograd_graph row")
    assert shell.user_ns["x"].grad_fn is shell.user_ns["base_fn"]
    run("plain = torch.zeros(4)\npart = plain[:2]\npart += 1")
    assert "leaf · requires no grad" in shown("%autograd_inspect part")


def test_what_cannot_be_read_is_not_touched(run, shown):
    run("import torch\nwith torch.inference_mode():\n    t = torch.ones(2)")
    assert "inference tensor" in shown("%autograd_inspect t")
    run("class Own(torch.Tensor): pass\ns = torch.ones(3).as_subclass(Own)")
    assert "view of an unnamed tensor" in shown("%autograd_inspect s")


SHARED = """\
import torch
base = torch.zeros(4)
view, cut, data, array = base[1:], base.detach(), base.data, base.numpy()
other = torch.zeros(4)"""


def test_who_shares_memory_and_who_the_version_counter(run, session):
    """A view and `.detach()` share the counter, `.data` has its own, an array none."""
    from autograd_explain.intercept.looking import tensor_table

    run(SHARED)
    (memory,) = tensor_table(session, "base other").shared
    counters = {name: s.counter for s in memory.sharers for name in s.names}
    assert counters == {"base": 0, "view": 0, "cut": 0, "data": 1, "array": None}
    assert memory.inferred and memory.sharers[-1].is_array and memory.bytes == 16
    run("base += 1")
    (memory,) = tensor_table(session, "base").shared
    versions = {name: s.version for s in memory.sharers for name in s.names}
    assert versions == {"base": 1, "view": 1, "cut": 1, "data": 0, "array": None}


def test_the_memory_is_drawn(run, shown):
    run(SHARED)
    out = shown("%autograd_inspect base")
    assert "One memory, 16 bytes" in out and "Names on one line share a version counter" in out
    lines = [line for line in out.splitlines() if "`" in line]
    assert [line.index("○") for line in lines[:-1]] == [0, 0, 0, 2]
    assert lines[-1].endswith("`array` NumPy array: it has no version counter")


def test_which_counter_is_unknown_where_the_past_is(run, session, shell):
    from autograd_explain.intercept.looking import tensor_table

    base = torch.zeros(2)
    shell.user_ns.update(base=base, given=base.data)
    (memory,) = tensor_table(session, "base").shared
    assert [s.counter for s in memory.sharers] == [0, None]


# Graphs


def test_a_graph(run, shown):
    run(SETUP)
    out = shown("%autograd_graph loss")
    assert "The graph of `loss`, time runs downwards; nodes: 6, leaves: 1" in out
    assert "x = w * 2  `Mul`; leaves `w`" in out
    assert "y = torch.sigmoid(x)  `Sigmoid`" in out
    assert "loss = (y * 3).sum() + x.sum()" in out and "`Mul → Sum`" in out
    assert "The lines are inferred from the source." in out and "✗" not in out


def test_lines_that_were_observed(run, shown):
    run("%%autograd_check\n" + SETUP)
    assert "The lines were observed as they ran." in shown("%autograd_graph loss")


def test_without_lines_the_users_names_stand_at_the_operations(run, shown, shell):
    w = torch.ones(2, requires_grad=True)
    x = w.exp()
    shell.user_ns.update(w=w, x=x, loss=x.sum())
    out = shown("%autograd_graph loss")
    assert "`Exp (x) → Sum (loss)`; leaves `w`" in out


def test_what_is_asked_without_running_the_users_code(run, shown, shell):
    """An unpack hook would run; the results of one node stand together."""
    run(
        "import torch\nw, calls = torch.ones(4, requires_grad=True), []\n"
        "with torch.autograd.graph.saved_tensors_hooks(lambda t: t, calls.append):\n"
        "    p, q = w.exp().split(2)\n    loss = (p * q).sum()"
    )
    assert "Split (p, q)`" in shown("%autograd_graph loss")
    assert shell.user_ns["calls"] == []


def test_rows_whose_line_is_not_known_say_so(run, shown, shell):
    given = torch.ones(2, requires_grad=True).exp()
    shell.user_ns["given"] = given
    run("loss = given.sum()")
    out = shown("%autograd_graph loss")
    assert "`Exp (given)`; leaves `[2]` [line not found]" in out and "loss = given.sum()" in out


def test_too_many_lanes_are_told_in_numbers(run, shown):
    run(
        "import torch\nw = torch.ones(2, requires_grad=True)\nfs = [w.exp()]\n"
        "for n in range(14):\n    fs.append(torch.stack(fs).sum(0).sin())\n"
        "loss = torch.stack(fs).sum() + fs[3].sum()"
    )
    out = shown("%autograd_graph loss")
    assert "1. `Exp" in out and "; uses 1–3" in out and "Too many values" in out


def test_a_graph_that_backward_will_refuse(run, shown):
    run(SETUP + "\ny.add_(1)")
    out = shown("%autograd_graph loss")
    assert "saved `result` at version 0, now 1; written by" in out and "`y.add_(1)`" in out
    assert (
        "├─✗ y = torch.sigmoid(x)" in out and "Saved values that were overwritten since: 1." in out
    )


def test_a_freed_graph(run, shown):
    run(SETUP + "\nloss.backward()")
    assert "A backward has freed its saved values" in shown("%autograd_graph loss")
    run("both = loss + (x.detach() * w).sum()")
    out = shown("%autograd_graph both")
    assert "nodes: another one" in out and "its saved values are freed" in out


DEEP = """\
import torch
from torch import nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Linear(4, 4), nn.Linear(4, 4), nn.LayerNorm(4)
    def forward(self, h):
        return h + self.b(torch.relu(self.a(self.norm(h))))
blocks = nn.ModuleList(Block() for _ in range({count}))
h = torch.ones(2, 4)
for block in blocks:
    h = block(h)
loss = h.square().mean()"""


def test_repeated_layers_are_told_once(run, shown):
    run(DEEP.format(count=60))
    out = shown("%autograd_graph loss")
    assert len(out.splitlines()) < 30 and "times the next 4 rows:" in out
    assert re.search(r"`blocks\[1…59\]\.norm\.weight, blocks\[1…59\]\.norm\.bias`", out)


def test_ten_thousand_nodes_are_a_few_rows(run, session):
    from autograd_explain.intercept.looking import graph_picture

    run(
        "import torch\nw = torch.eye(2, requires_grad=True)\nh = torch.ones(2)\n"
        "for _ in range(4000):\n    h = torch.tanh(w @ h) + h\nloss = h.sum()"
    )
    start = time.process_time()
    picture = graph_picture(session, "loss")
    out = picture.to_text()
    assert time.process_time() - start < 5  # usually 1
    assert picture.report.nodes == 12_001 and len(out.splitlines()) < 15
    assert picture.to_html().count("<svg") < 10


def test_around_a_tensor(run, shown):
    run(SETUP)
    out = shown("%autograd_graph loss --around y --distance 1")
    assert (
        "▸ y = torch.sigmoid(x)" in out
        and "surroundings of `y` are shown, up to a distance of 1" in out
    )
    assert "x.sum()" not in out.replace("loss = (y * 3).sum() + x.sum()", "")
    assert "x = w * 2" in out
    assert "▸" in shown("%autograd_graph loss --around w")


@pytest.mark.parametrize("language", ["ja", "zh"])
def test_in_the_sessions_language(run, shown, language):
    said = {
        "ja": ("リーフ · 勾配が必要", "上から計算順"),
        "zh": ("叶子张量 · 需要梯度", "计算顺序"),
    }
    run(SETUP + f"\n%config AutogradExplain.language = {language!r}")
    assert said[language][0] in shown("%autograd_inspect w")
    assert said[language][1] in shown("%autograd_graph loss")
    assert "w" in shown("%autograd_graph w")


# What is asked


@pytest.mark.parametrize("magic", ["%autograd_inspect", "%autograd_graph"])
@pytest.mark.parametrize(
    ("rest", "complaint"),
    [
        ("", "Which tensor?"),
        ("nope", "NameError"),
        ("losss", "did you mean loss?"),
        ("w.sum()", "would run code"),
        ("1+", "is no expression"),
        ("torch", "torch is no tensor: its type is module"),
        ("outs[9]", "IndexError"),
    ],
)
def test_bad_input(run, shown, magic, rest, complaint):
    run(SETUP)
    out = shown(f"{magic} {rest}")
    assert "UsageError" in out
    assert complaint in out and "Traceback" not in out


@pytest.mark.parametrize(
    ("rest", "complaint"),
    [
        ("loss x", "one tensor at a time"),
        ("loss --around", "--around wants a value"),
        ("loss --around other", "other is not in the graph of loss"),
        ("loss --around x --distance far", "must be a positive number"),
        ("loss --distance 3", "--distance is that from the tensor of --around"),
        ("loss --depth 3", "no such option: --depth"),
    ],
)
def test_bad_options(run, shown, rest, complaint):
    run(SETUP + "\nother = torch.ones(2, requires_grad=True)")
    out = shown(f"%autograd_graph {rest}")
    assert "UsageError" in out and complaint in out and "Traceback" not in out


def test_expressions_with_blanks():
    from autograd_explain.intercept.looking import words_of

    line = "x  d['a b'][0, 1] y[ 'c' ]"
    assert words_of(line) == ["x", "d['a b'][0, 1]", "y[ 'c' ]"]


def test_help_and_completion(run, shell):
    run(SETUP + "\nnet = torch.nn.Linear(2, 2)\nnumber = 1")
    for name in ("autograd_inspect", "autograd_graph"):
        assert f"%{name}" in shell.find_line_magic(name).__doc__
        assert f"%{name}" in shell.complete(f"%{name[:-2]}", f"%{name[:-2]}", len(name) - 1)[1]
        line = f"%{name} "
        found = shell.complete("", line, len(line))[1]
        assert {"w", "net.weight", "outs[0]"} <= set(found) and "number" not in found
    for line, expected in (
        ("%autograd_graph loss --a", "--around"),
        ("%autograd_graph loss --around ro", "row"),
    ):
        assert expected in shell.complete(line.rpartition(" ")[2], line, len(line))[1]


# Manners


def test_nothing_is_touched_and_nothing_kept(run, shown, shell):
    run(SETUP + "\nx.retain_grad()\nd = x.data\nloss.backward(retain_graph=True)")
    names = ("w", "x", "row", "y", "loss", "d")
    before = [(shell.user_ns[n]._version, shell.user_ns[n].grad_fn) for n in names]
    state = torch.get_rng_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown("%autograd_inspect w x row y loss d")
        shown("%autograd_graph loss --around y")
    assert before == [(shell.user_ns[n]._version, shell.user_ns[n].grad_fn) for n in names]
    assert torch.equal(torch.get_rng_state(), state)
    before.clear()
    alive = [weakref.ref(shell.user_ns[n]) for n in ("x", "y", "loss", "d")]
    run("del x, y, loss, d, row, outs")
    gc.collect()
    assert [ref() for ref in alive] == [None] * 4
