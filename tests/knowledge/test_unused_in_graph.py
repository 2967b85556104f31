"""A cast to integers between an input and a result: what is proposed goes by what reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge.played import edited, explained, play
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

PROGRAM = """# %%
import torch
from torch import nn
torch.manual_seed(0)
words, head = nn.Embedding(9, 3), nn.Linear(3, 1)
several = nn.ModuleList(nn.Embedding(n, 3) for n in (7, 9))
def score(ids):
    @
    return head(x).sum()
ids = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
# %%
out = score(ids)
grads = torch.autograd.grad(out, ids)
"""


@pytest.mark.parametrize(
    ("cast", "kept"),
    [
        ("rows = ids.long()\n    x = words(rows)", True),
        ("x = words(ids.int())", True),
        ("x = words.weight[ids.long()]", True),
        ("rows = ids.long()\n    x = nn.functional.one_hot(rows, 9).float() @ words.weight", True),
        ("rows = ids.long()\n    x = sum(each(rows[:2]) for each in several)", True),
        ("x = ids.long() * words.weight[0]", False),
    ],
)
def test_integers_that_choose_stay(cast: str, kept: bool) -> None:
    found = explained(cells_of(PROGRAM.replace("@", cast)))
    assert found.finding.cause == "unused_in_graph"
    assert any(r.fix == "uncut" for r in found.rewrites) is not kept


GIVEN = """# %%
import torch
from torch import nn
torch.manual_seed(0)
class Filter(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw_width, self.shown = nn.Parameter(torch.zeros(3)), None
    @property
    def width(self):
        return self.raw_width.exp()
    @width.setter
    def width(self, value):
        if not torch.is_tensor(value):
            value = torch.tensor(value)
        self.put(raw_width=value.log())
    def put(self, **given):
        for name, value in given.items():
            getattr(self, name).data.copy_(value.expand_as(getattr(self, name)))
        return self
    def forward(self, x):
        return (x * self.width).sum()
net, smooth = nn.Sequential(nn.Linear(2, 3), nn.Softplus()), Filter()
# %%
def score(z):
    STATEMENT
    return smooth(z.sum())
grads = torch.autograd.grad(score(torch.ones(2)), list(net.parameters()))
"""


@pytest.mark.parametrize(
    ("statement", "variant", "rewritten"),
    [
        ("smooth.width = net(z)", "numbers", True),
        ("smooth.put(width=net(z))", "numbers", True),
        ("smooth.put(raw_width=net(z).log())", "numbers", True),
        ("smooth.put(width=net(z), raw_width=torch.ones(3))", "numbers", False),
        ("smooth.width = net(z).detach()", "numbers", False),
        ("smooth.shown = net(z)", "", False),
        ("smooth.width = z.sum()", "", False),
    ],
)
def test_an_object_that_keeps_the_numbers(statement: str, variant: str, rewritten: bool) -> None:
    found = explained(cells_of(GIVEN.replace("STATEMENT", statement)))
    assert (found.finding.cause, found.finding.variant) == ("unused_in_graph", variant)
    cause = [e.place.source for e in found.finding.events if e.what is What.CAUSE and e.place]
    assert not variant or cause[0] == statement
    texts = [r.edits[0].new_source for r in found.rewrites if r.fix == "with_graph"]
    assert bool(texts) is rewritten
    assert all("del smooth.raw_width\n    smooth.raw_width = " in text for text in texts)


def test_in_a_method_of_a_class_of_several_modules() -> None:
    several = """class Task(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.smooth = net, Filter()
    def forward(self, z):
        self.smooth.width = self.net(z)
        return self.smooth(z.sum())
tasks = [Task(), Task()]
def score(z):
    return sum(task(z) for task in tasks)
"""
    start = GIVEN[: GIVEN.index("def score")]
    found = explained(cells_of(start + several + GIVEN[GIVEN.index("grads =") :]))
    assert found.finding.variant == "numbers"
    new = found.rewrites[0].edits[0].new_source
    assert "        del self.smooth.raw_width\n" in new


def test_an_object_that_does_more_with_what_it_gets_keeps_its_statement() -> None:
    more = GIVEN.replace("self.put(raw_width", "self.shown = None\n        self.put(raw_width")
    found = explained(cells_of(more.replace("STATEMENT", "smooth.width = net(z)")))
    assert found.finding.variant == "numbers"
    assert not found.rewrites


def test_the_silent_loss_of_what_a_package_copies_gets_the_tensor_itself(tmp_path: Path) -> None:
    module, rest = GIVEN.removeprefix("# %%\n").split("net, smooth", 1)
    loop = """# %%
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    opt.zero_grad()
    smooth.width = net(torch.ones(2))
    smooth(torch.ones(3)).backward()
    opt.step()
"""
    begin = "import torch\nfrom torch import nn\nfrom filters import Filter\nnet, smooth"
    with installed(tmp_path, "filters", module):
        cells = cells_of(f"# %%\n{begin}{rest.split('# %%')[0]}{loop}")
        found = play(cells, watched=True).diagnosis
    assert found is not None and found.finding.cause == "silent_cut"
    texts = [r.edits[0].new_source for r in found.rewrites if r.fix == "with_graph"]
    assert any("    smooth.raw_width = new_raw_width\n" in text for text in texts)


OFFLOADING = """
from torch import nn
def offload(model):
    for part in model.modules():
        if part._parameters:
            offload_part(part, dict(part._parameters))
    return model
def offload_part(part, kept):
    def load(module, given):
        for name, value in kept.items():
            module._parameters[name] = nn.Parameter(value.detach())
    def drop(module, given, result):
        for name, value in kept.items():
            module._parameters[name] = nn.Parameter(value.to("meta"))
    part.register_forward_pre_hook(load)
    part.register_forward_hook(drop)
    drop(part, None, None)
def watch(model):
    for part in model.modules():
        part.register_forward_hook(lambda module, given, result: None)
    return model
"""


@pytest.mark.parametrize(
    ("handed", "line"),
    [
        ("net = offload(net)", None),
        ("engine = offload(model=net)", "engine = net"),
        ("watch(net)", ""),
    ],
)
def test_a_package_that_exchanges_parameters(tmp_path: Path, handed: str, line: str | None) -> None:
    begin = "import torch\nfrom torch import nn\nfrom offloading import offload, watch\n"
    made = "net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))\n"
    asked = "loss = net(torch.rand(2, 3)).sum()\ngrads = torch.autograd.grad(loss, WEIGHTS)"
    if line == "":
        made, weights = made + "net[0].more = nn.Linear(3, 4)\n", "[net[0].more.weight]"
    else:
        weights = "list(net.parameters())"
    cells = (begin, made + handed, asked.replace("WEIGHTS", weights))
    with installed(tmp_path, "offloading", OFFLOADING):
        found = explained(cells)
        assert found.finding.cause == "unused_in_graph"
        assert (found.finding.variant == "package") is (line != "")
        if line != "":
            place = found.finding.place(What.CAUSE)
            assert place is not None and place.source == handed
            repaired = edited(cells, found.rewrites[0])
            assert (line or "net = nn") in repaired[1] and handed not in repaired[1]
            run(repaired)


def test_the_line_that_went_to_numpy_is_to_blame_and_not_what_numpy_computed_then() -> None:
    cells = cells_of("""# %%
import numpy as np
import torch
def describe(r):
    x = r.detach().numpy()
    d = np.sqrt(((x[:, None] - x[None]) ** 2).sum(-1) + 0.1)
    return torch.tensor(np.exp(-d))
r, net = torch.rand(4, 3, requires_grad=True), torch.nn.Linear(4, 1)
# %%
torch.autograd.grad(net(describe(r)).sum(), r)
""")
    found = explained(cells)
    causes = [e.place.source for e in found.finding.events if e.what is What.CAUSE and e.place]
    assert causes == ["x = r.detach().numpy()"]
    repaired = edited(cells, found.rewrites[0])
    assert "return torch.exp(-d)" in repaired[0]
    run(repaired)


def test_each_line_that_took_a_tensor_out_of_the_graph_is_told() -> None:
    cells = cells_of("""# %%
import torch
x = torch.rand(3, requires_grad=True)
a = x.detach() * 2
y = torch.from_numpy(a.numpy())
torch.autograd.grad((torch.ones(3, requires_grad=True) * y).sum(), x)
""")
    events = explained(cells).finding.events
    causes = {e.place.source for e in events if e.what is What.CAUSE and e.place}
    assert causes == {"a = x.detach() * 2", "y = torch.from_numpy(a.numpy())"}


LOOKED_UP = """# %%
import torch
from torch import nn
torch.manual_seed(0)
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(12, 4), nn.Linear(4, 3)
    def forward(self, ids=None, mask=None, vectors=None):
        if vectors is None:
            vectors = self.table(ids)
        if mask is not None:
            vectors = vectors * mask.unsqueeze(-1)
        return self.head(vectors.mean(1).tanh())
net, mask, other = Tagger(), torch.ones(5, 6), torch.randint(0, 12, (5, 6))
def scored(ids):
    return net.table(ids).mean()
# %%
def saliency(net, ids):
    vectors = net.table(ids)
    best = net(ids).square().sum()
    (grad,) = torch.autograd.grad(best, vectors)
    return grad
shown = saliency(net, torch.randint(0, 12, (5, 6)))
"""


@pytest.mark.parametrize(
    ("old", "new", "variant", "line"),
    [
        ("", "", "again", "best = net(None, vectors=vectors)"),
        ("net(ids)", "net(ids, mask)", "again", "best = net(None, mask, vectors=vectors)"),
        (
            "net(ids)",
            "net(mask=mask, ids=ids)",
            "again",
            "best = net(mask=mask, ids=None, vectors=vectors)",
        ),
        ("ids=None", "ids", "again", "best = net(ids, vectors=vectors)"),
        ("mean(1)", "mean(1 + 0 * len(ids))", "again", "best = net(ids, vectors=vectors)"),
        ("net(ids)", "net.table(ids)", "again", "best = vectors.square()"),
        # What the layer gives is not what the parameter stands for.
        ("self.table(ids)", "self.table(ids) * 2", "again", ""),
        ("self.table(ids)", "self.table(ids + 0)", "again", ""),
        ("vectors is None", "mask is None", "again", ""),
        ("net(ids)", "scored(ids)", "again", ""),
        # Computed from something else.
        ("net(ids)", "net(other)", "derived", None),
        ("    best", "    ids = ids.flip(0)\n    best", "derived", None),
        ("net(ids)", "net(ids, vectors=vectors.detach())", "", None),
    ],
)
def test_a_value_that_the_result_computes_again(
    old: str, new: str, variant: str, line: str | None
) -> None:
    cells = cells_of(LOOKED_UP.replace(old, new) if old else LOOKED_UP)
    found = explained(cells)
    assert (found.finding.cause, found.finding.variant) == ("unused_in_graph", variant)
    rewrites = [r for r in found.rewrites if r.fix == "handed_in"]
    assert bool(rewrites) is bool(line)
    place = found.finding.place(What.CAUSE)
    assert variant != "again" or (place is not None and place.source in LOOKED_UP.replace(old, new))
    for rewrite in rewrites:
        repaired = edited(cells, rewrite)
        assert (line or "") in repaired[1]
        run(repaired)


def test_what_the_users_own_function_makes_again_is_handed_in() -> None:
    cells = cells_of("""# %%
import torch
from torch import nn
torch.manual_seed(0)
trunk, head = nn.Sequential(nn.Linear(3, 8), nn.Tanh()), nn.Linear(8, 1)
def features(x):
    return trunk(x) / 2
def energy(x, feats=None):
    feats = features(x) if feats is None else feats
    return head(feats).square().sum() + x.square().sum()
# %%
x = torch.randn(4, 3)
feats = features(x)
loss = energy(x)
slope = torch.autograd.grad(loss, feats)[0]
""")
    found = explained(cells)
    assert found.finding.variant == "again"
    repaired = edited(cells, found.rewrites[0])
    assert "loss = energy(x, feats=feats)" in repaired[1]
    run(repaired)


@pytest.mark.parametrize(
    ("write", "rewritten"),
    [
        ("nn.utils.vector_to_parameters(maker(z), head.parameters())", False),
        ("head.weight = nn.Parameter(maker(z)[:6].view(2, 3))", True),
    ],
)
def test_a_line_that_was_seen_to_take_the_values_out_of_the_graph(
    write: str, rewritten: bool
) -> None:
    text = f"""# %%
import torch
from torch import nn
maker, head = nn.Linear(2, 8), nn.Linear(3, 2)
def predict(z, x):
    {write}
    return head(x)
# %%
out = predict(torch.ones(2), torch.ones(1, 3)).sum()
grads = torch.autograd.grad(out, list(maker.parameters()))
"""
    found = play(cells_of(text), watched=True).diagnosis
    assert found is not None and found.finding.variant == "cut"
    place = found.finding.place(What.CAUSE)
    assert place is not None and place.source == write
    assert any(r.fix == "uncut" for r in found.rewrites) is rewritten
