"""Values that leave the graph and come back, by whatever constructor or cast."""

from __future__ import annotations

import pytest
from silent_programs import HEAD
from watching import session, signals

MODEL = (
    HEAD + "import copy\nimport torch.nn.functional as F\n"
    "net, head = nn.Linear(3, 4), nn.Linear(1, 1)\nx = torch.randn(3, 3)\n"
    "opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)\n"
    "def loss_of(h):\n    return head(h).sum()\n"
)
#: How `h`, a column of three numbers, is made of `net(x)` in a helper: names alone do not tell.
SURE = (
    "torch.FloatTensor(net(x)[:, :1].tolist())",
    "torch.Tensor([[v.item()] for v in net(x)[:, 0]])",
    "torch.DoubleTensor(net(x)[:, :1].tolist()).float()",
    "torch.tensor(net(x)[:, :1].tolist(), dtype=torch.float64).type(torch.float32)",
    "net(x)[:, :1].detach().type(torch.float64).type(torch.FloatTensor)",
    "copy.deepcopy(net(x)[:, :1].detach())",
    "x.new(net(x)[:, :1].tolist())",
    "torch.FloatTensor(net(x)[:, :1].detach().numpy())",
)


@pytest.mark.parametrize("made", SURE)
def test_a_cut_is_seen_through_any_constructor_or_cast(made: str) -> None:
    (found,) = signals((MODEL, _training(made)))
    assert (found.name, [m.place.line for m in found.moments["cut"]][:1]) == ("graph-cut", [2])


#: What has no derivative, alone or beside what has.
CHOICES = (
    "(net(x) > 0).float()[:, :1]",
    "(net(x) > 0).type(torch.float32)[:, :1]",
    "(net(x) > 0).type(torch.FloatTensor)[:, :1]",
    "x[net(x).topk(1).indices[:, 0] % 3][:, :1]",
    "net(x).sort(dim=1)[1][:, :1].float()",
    "x.new_zeros(3, 1).index_put((net(x).argmax(1) == 0,), x.new_ones(1))",
)


@pytest.mark.parametrize("made", CHOICES)
def test_a_choice_that_alone_depends_on_parameters_is_their_end(made: str) -> None:
    (found,) = signals((MODEL, _training(made)))
    assert (found.name, found.evidence["way"]) == ("graph-cut", "operation")


def test_a_choice_is_followed_into_what_it_is_written_to() -> None:
    made = "def chosen(h):\n    out = torch.zeros(3, 1)\n    out[h[:, 0] > 0] = 1.0\n    return out"
    (found,) = signals((MODEL, made, _training("chosen(net(x))")))
    assert found.moments["cut"][0].place.source == "out[h[:, 0] > 0] = 1.0"


@pytest.mark.parametrize("made", ["net(x).topk(1)[0]", "net(x).max(1, keepdim=True).values"])
def test_values_beside_their_indices_keep_the_gradient(made: str) -> None:
    assert signals((MODEL, _training(made))) == []


def test_a_number_that_goes_to_a_device_without_values_does_no_harm() -> None:
    cells = (
        HEAD + "w = torch.randn(3, requires_grad=True)",
        "a = (w * w).sum().item()\nb = torch.tensor([a, 2.0], device='meta')\n"
        "one = torch.arange(8.0)[::4][:1].numpy()\nh = torch.exp(w)\nloss = h.sum()\n"
        "h.data.mul_(2)\nloss.backward()",
    )
    found, recording = session(cells, {})
    assert [s.name for s in found] == ["silent-overwrite"] and recording.limits == ()


def _training(made: str) -> str:
    return (
        "def column(x):\n"
        f"    return {made}\n"
        "for _ in range(3):\n    opt.zero_grad()\n    loss_of(column(x)).backward()\n    opt.step()"
    )


KEPT = MODEL + "class Kept(nn.Module):\n    pass\nkept = Kept()\n"
WRITES = ("kept.h.data.copy_({})", "kept.h.data[:] = {}", "kept.h.data = {}")


@pytest.mark.parametrize("write", WRITES)
def test_a_write_past_the_graph_of_what_the_loss_reads_is_a_cut(write: str) -> None:
    cells = KEPT + "kept.h = torch.zeros(3, 1)", _writing(write.format("net(x)[:, :1]"))
    (found,) = signals(cells)
    assert (found.name, found.moments["cut"][0].place.line) == ("graph-cut", 2)
    assert found.evidence["way"] == "written"


def test_a_parameter_is_given_its_first_value_on_purpose() -> None:
    given = "kept.h = nn.Parameter(torch.zeros(3, 1))\nkept.h.data.copy_(net(x)[:, :1])"
    given += "\nopt.add_param_group({'params': [kept.h]})"
    assert signals((KEPT + given, _writing("pass"))) == []


def test_a_moving_average_is_no_cut() -> None:
    mean = "kept.h.data.mul_(0.9).add_(0.1 * net(x)[:, :1].mean(0))"
    cells = KEPT + "kept.h = torch.zeros(1)", _writing(mean, "loss_of(net(x)[:, :1] - kept.h)")
    assert signals(cells) == []


def test_what_another_optimizer_stepped_with_has_a_gradient() -> None:
    """A note, until the parameter is trained through a graph that is too large to be walked."""
    train = (
        "opt = torch.optim.SGD([w, v], lr=0.1)\nfor _ in range(2):\n    opt.zero_grad()\n"
        "    loss = loss_of(x @ w)\n    loss.backward()\n    opt.step()"
    )
    first = (
        HEAD + "w, v = (torch.randn(3, 1, requires_grad=True) for _ in range(2))\n"
        "x, seen = torch.randn(4, 3), []\n"
        "def loss_of(h):\n    seen.append(h.mean().item())\n    return (x @ v).mean()"
    )
    again = (
        "def loss_of(h):\n    h = h + x @ v\n    for _ in range(5100):\n        h = h * 1.0\n"
        "    return h.mean()"
    )
    assert len(signals((first, train), sure=False)) == 1
    assert len(signals((first, train, again, train), sure=False)) == 1


def test_what_an_earlier_cell_has_drawn_is_not_blamed() -> None:
    """`w` gets no gradient because of the comparison, not of the curve."""
    cells = (
        HEAD
        + "w, v = torch.randn(3, 4, requires_grad=True), torch.randn(4, 1, requires_grad=True)\n"
        "x = torch.randn(5, 3)\ndef spikes(h):\n    out = torch.zeros_like(h)\n"
        "    out[h > 0] = 1.0\n    return out",
        "curve = (x @ w).detach().numpy()",
        "opt = torch.optim.SGD([w, v], lr=0.1)\nfor _ in range(2):\n    opt.zero_grad()\n"
        "    (spikes(x @ w) @ v).mean().backward()\n    opt.step()",
    )
    (found,) = signals(cells)
    assert [m.place.source for m in found.moments["cut"]] == ["out[h > 0] = 1.0"]


def _writing(write: str, loss: str = "loss_of(kept.h)") -> str:
    return (
        f"for _ in range(3):\n    {write}\n    opt.zero_grad()\n    loss = {loss}\n"
        "    loss.backward()\n    opt.step()"
    )


def test_a_parameter_does_not_come_from_its_own_data() -> None:
    """A loop reads the `.data` of each at one line, the leaves above which are noted twice only."""
    cells = (
        HEAD + "ps = [torch.randn(3, requires_grad=True) for _ in range(5)]",
        "for _ in range(4):\n"
        "    loss = sum((p * p).sum() for p in ps)\n"
        "    for p in ps:\n        p.grad = None\n"
        "    loss.backward()\n"
        "    for p in ps:\n        p.data += -0.1 * p.grad",
        "loss = sum((p * p).sum() for p in ps)\nloss.backward()",
    )
    namespace: dict[str, object] = {"__name__": "__main__"}
    found, recording = session(cells, namespace)
    assert found == [] and not recording.suspicion.traces


TERMS = {
    "an error rate": "(out.argmax(1) != 0).float().mean()",
    "a count": "0.1 * (out.abs() > 1.0).sum()",
    "what a table has for a choice": "table[out.topk(1).indices[:, 0] % 3].mean()",
}
NO_TERMS = {
    "a mask of what has a graph": "(out * (out > 0)).mean()",
    "a number that is only divided by": "out.mean() / (out > 0).sum().clamp(min=1)",
    "a choice that goes straight through": "(out + ((out > 0).float() - out).detach()).mean()",
    "hard samples": "(F.gumbel_softmax(out, hard=True) * torch.arange(4.0)).mean()",
    "a written stop": "out.mean().detach() * 0",
    "a choice between values": "out.gather(1, out.argmax(1, keepdim=True)).mean()",
}
LOSS = (
    "table = torch.rand(3)\n"
    "for _ in range(3):\n    opt.zero_grad()\n    out = net(x)\n    term = {}\n"
    "    loss = head(out[:, :1]).sum() + term\n    loss.backward()\n    opt.step()"
)


@pytest.mark.parametrize("name", TERMS)
def test_a_term_that_only_a_choice_leads_to(name: str) -> None:
    (found,) = signals((MODEL, LOSS.format(TERMS[name])))
    assert (found.name, found.evidence["way"]) == ("graph-cut", "term")
    assert found.moments["cut"][0].place.line == 5


@pytest.mark.parametrize("name", NO_TERMS)
def test_a_choice_beside_what_has_a_graph(name: str) -> None:
    assert signals((MODEL, LOSS.format(NO_TERMS[name]))) == []


def test_a_rate_that_is_only_logged_is_no_term() -> None:
    loop = LOSS.format("(out.argmax(1) != 0).float().mean()").replace(" + term", "")
    assert signals((MODEL, loop)) == []


COPIES = {
    "a moving average": "vector_to_parameters(0.9 * flat(copied) + 0.1 * flat(net), own)",
    "the weights as they are": "vector_to_parameters(flat(net), own)",
    "the weights in parts": "vector_to_parameters(torch.cat(flat(net).split([12, 4])), own)",
    "a step of a search": "vector_to_parameters(1.01 * flat(net), list(net.parameters()))",
    "a bank of what the last round gave": "bank.data[:] = out",
}
COPIED = """\
from torch.nn.utils import parameters_to_vector, vector_to_parameters
def flat(module):
    return parameters_to_vector(module.parameters())
copied, bank = copy.deepcopy(net), nn.Parameter(torch.zeros(3, 4))
own, out = list(copied.parameters()), net(x)
for _ in range(3):
    {before}
    opt.zero_grad()
    out = net(x)
    loss = (out * copied(x)).sum() + (out * bank).sum() + head(out[:, :1]).sum()
    loss.backward()
    {after}
    opt.step()
"""


@pytest.mark.parametrize("name", COPIES)
def test_weights_that_are_no_result_of_the_round(name: str) -> None:
    assert signals((MODEL, COPIED.format(before=COPIES[name], after="pass"))) == []


def test_generated_weights_whose_gradient_is_handed_on() -> None:
    made = "vector_to_parameters(flat(net) * net(x).mean(), own)"
    for after, told in (("pass", 1), ("[p.grad for p in own]", 0)):
        assert len(signals((MODEL, COPIED.format(before=made, after=after)))) == told
