"""`%autograd_inspect` and `%autograd_graph`: facts of living tensors, read without harm."""

import pytest

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


def test_a_leaf_a_result_and_a_view(run, shown):
    run(SETUP)
    out = shown("%autograd_inspect w x row outs[0]").splitlines()
    assert out[0] == "w: float32 [2, 3] cpu"
    assert out[1] == "  leaf · requires grad · version 0 · .grad is None"
    assert "  result of MulBackward0 · requires grad · version 0" in out
    assert "  view of x, outs[0]" in out
    assert "outs[0]: float32 [2, 3] cpu" in out


def test_a_gradient(run, shown):
    run(SETUP + "\nloss.backward()")
    assert ".grad of shape [2, 3]" in shown("%autograd_inspect w")


def test_a_view_written_in_place_is_not_asked(run, shown, shell):
    """Reading its grad_fn would rebuild it: the view's node is the same afterwards."""
    run(SETUP + "\nrow.mul_(2)\nbase_fn = x.grad_fn")
    assert "its grad_fn is not read" in shown("%autograd_inspect row")
    assert shell.user_ns["x"].grad_fn is shell.user_ns["base_fn"]
    run("plain = torch.zeros(4)\npart = plain[:2]\npart += 1")
    assert "leaf · requires no grad · version 1" in shown("%autograd_inspect part")


def test_what_cannot_be_read_is_not_touched(run, shown):
    run("import torch\nwith torch.inference_mode():\n    t = torch.ones(2)")
    assert "inference tensor" in shown("%autograd_inspect t")


def test_a_graph(run, shown):
    run(SETUP)
    out = shown("%autograd_graph loss")
    assert out.splitlines()[0] == "AddBackward0  loss"
    assert "      SigmoidBackward0  y" in out
    assert "AccumulateGrad  w" in out and "(shown above)" in out
    assert "✗" not in out


def test_a_graph_that_backward_will_refuse(run, shown):
    run(SETUP + "\ny.add_(1)")
    assert "(✗ saved `result` at version 0, now 1)" in shown("%autograd_graph loss")
    run(SETUP + "\nloss.backward()")
    assert "(saved tensors freed)" in shown("%autograd_graph loss")


def test_no_graph_and_a_big_one(run, shown):
    run(SETUP + "\nfor _ in range(500):\n    loss = loss + 1")
    assert "w has no graph" in shown("%autograd_graph w")
    out = shown("%autograd_graph loss").splitlines()
    assert len(out) == 61 and out[-1] == "… and more"


@pytest.mark.parametrize(
    ("language", "said"), [("ja", "リーフ · 勾配が必要"), ("zh", "叶子张量 · 需要梯度")]
)
def test_in_the_sessions_language(run, shown, language, said):
    run(SETUP + f"\n%config AutogradExplain.language = {language!r}")
    assert said in shown("%autograd_inspect w")


@pytest.mark.parametrize("magic", ["%autograd_inspect", "%autograd_graph"])
@pytest.mark.parametrize(
    ("rest", "complaint"),
    [
        ("", "Which tensor?"),
        ("nope", "NameError"),
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


def test_help_and_completion(shell):
    for name in ("autograd_inspect", "autograd_graph"):
        assert f"%{name}" in shell.find_line_magic(name).__doc__
        assert f"%{name}" in shell.complete(f"%{name[:-2]}", f"%{name[:-2]}", len(name) - 1)[1]
