"""A full backward hook of the user's: an installed package writes in place behind its module, or no
input of that requires grad."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from knowledge.played import added, edited, explained
from knowledge.test_cases import run
from notebook import installed

from autograd_explain.model import What
from autograd_explain.render.topic_content import cells_of

LIBRARY = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 2)
    def forward(self, x):
        return self.head(torch.nn.functional.relu(self.body(x), inplace=True))
"""
BEGIN = """# %%
import torch
from hooklib import Net
torch.manual_seed(0)
net = Net()
# %%
"""
RUN = """
# %%
net(torch.ones(2, 3)).square().sum().backward()
"""
HOOKED = [
    "def hook_output(module, args, output, hook={hook}):",
    "    if output.requires_grad:",
    "        output.register_hook(lambda grad: hook(module, None, (grad,)))",
]
#: The cell that registers the hook, the line that does, and the hook in the rewrite, None for none.
PROGRAMS: dict[str, tuple[str, str, str | None]] = {
    "a function keeps the gradient": (
        """
kept = {}
def keep(module, grad_input, grad_output):
    kept["body"] = grad_output[0].norm()
net.body.register_full_backward_hook(keep)""",
        "net.body.register_full_backward_hook(keep)",
        "keep",
    ),
    "a lambda that appends": (
        """
kept = []
net.body.register_full_backward_hook(lambda m, gi, go: kept.append(go[0]))""",
        "net.body.register_full_backward_hook(lambda m, gi, go: kept.append(go[0]))",
        "lambda m, gi, go: kept.append(go[0])",
    ),
    "made by a function, in a loop": (
        """
kept = {}
def keep_as(name):
    def hook(module, grad_input, grad_output):
        kept[name] = grad_output[0]
    return hook
for name, layer in net.named_children():
    layer.register_full_backward_hook(keep_as(name))""",
        "layer.register_full_backward_hook(keep_as(name))",
        "keep_as(name)",
    ),
    "a lambda that is told its name": (
        """
kept = {}
for n, layer in [("body", net.body)]:
    layer.register_full_backward_hook(lambda m, gi, go, n=n: kept.update({n: go[0]}))""",
        "layer.register_full_backward_hook(lambda m, gi, go, n=n: kept.update({n: go[0]}))",
        "lambda m, gi, go, n=n: kept.update({n: go[0]})",
    ),
    "a hook that changes the gradient of the input": (
        """
def clip(module, grad_input, grad_output):
    return tuple(g if g is None else g.clamp(-1, 1) for g in grad_input)
net.body.register_full_backward_hook(clip)""",
        "net.body.register_full_backward_hook(clip)",
        None,
    ),
}


@pytest.fixture(autouse=True)
def library(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path, "hooklib", LIBRARY):
        yield


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, line, hook = PROGRAMS[name]
    cells = cells_of(BEGIN + text + RUN)
    found = explained(cells)
    place = found.finding.place(What.CAUSE)
    assert found.finding.cause == "multi_view_written"
    assert place is not None
    assert place.source == line
    if hook is None:
        assert not found.rewrites
        return
    repaired = edited(cells, found.rewrites[0])
    assert [s.strip() for s in added(cells, repaired)][:3] == [
        s.format(hook=hook).strip() for s in HOOKED
    ]
    run(repaired)


def test_one_module_may_have_several_names() -> None:
    text = "other = net\ndef on(layer):\n    layer.register_full_backward_hook(print)\non(net.body)"
    finding = explained(cells_of(BEGIN + text + RUN)).finding
    assert finding.tensors[0].names == ("layer", "net.body", "other.body")


def test_where_a_library_writes_the_hook_is_to_change(tmp_path: Path) -> None:
    library = """\
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.act = torch.nn.Linear(3, 3), torch.nn.ReLU(inplace=True)
    def forward(self, x):
        return self.act(self.lin(x))
"""
    begin = "import torch\nfrom blockslib import Block\nnet = Block()\nx = torch.rand(2, 3)"
    hook = "def keep(module, given, grads):\n    pass\nnet.lin.register_full_backward_hook(keep)"
    own = f"{begin}\nnet = torch.nn.Sequential(net.lin, net.act)"
    folder = tmp_path / "blocks"
    folder.mkdir()
    with installed(folder, "blockslib", library):
        finding = explained((begin, hook, "net(x).sum().backward()")).finding
        others = explained((own, hook.replace("net.lin", "net[0]"), "net(x).sum()")).finding.events
    first = finding.events[0]
    assert finding.cause == "multi_view_written" and first.what is What.CAUSE
    assert finding.variant == "hook" and finding.tensors[0].names[:2] == ("net.lin", "net.act")
    assert first.place is not None and first.place.source.endswith("hook(keep)")
    assert others[0].what is What.CHANGED


def test_of_several_hooked_modules_the_one_is_named_whose_output_is_written(tmp_path: Path) -> None:
    library = """\
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.way = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3), nn.ReLU(inplace=True)])
    def forward(self, x):
        first, last, act = self.way
        y = act(last(first(x)))
        y += x
        return y
"""
    begin = "import torch\nfrom waylib import Block\nnet = Block()\nx = torch.rand(2, 3)"
    hook = """\
kept = []
def keep(module, given, grads):
    kept.append(grads[0])
for layer in net.way[:-1]:
    layer.register_full_backward_hook(keep)"""
    folder = tmp_path / "ways"
    folder.mkdir()
    with installed(folder, "waylib", library):
        one = explained((begin, hook, "net(x).sum().backward()"))
        own = explained((begin, hook.replace("[:-1]", "[2:]"), "net(x).sum().backward()")).finding
    assert one.finding.tensors[0].names == ("net.way[1]", "layer", "net.way[2]")
    assert [p.fix for p in one.rewrites[:2]] == ["tensor_hook", "not_inplace"]
    # Its own input is what a hooked module writes.
    assert own.tensors[0].names[0] == "net.way[2]" and own.variant == "function"


FIRST = """# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x, kept = torch.rand(5, 3), {}
# %%
@
# %%
net(x).sum().backward()
"""
ON_FIRST = "net[0].register_full_backward_hook(keep)"
WATCHES = {
    "the input's gradient": (
        f"def keep(module, given, grads):\n    kept[0] = given[0]\n{ON_FIRST}",
        ["net(x.requires_grad_()).sum().backward()"],
    ),
    "the output's gradient": (
        f"def keep(module, given, grads):\n    kept[0] = grads[0]\n{ON_FIRST}",
        [s.format(hook="keep") for s in HOOKED] + ["net[0].register_forward_hook(hook_output)"],
    ),
}


@pytest.mark.parametrize("what", WATCHES)
def test_a_module_whose_input_needs_no_gradient(what: str) -> None:
    text, lines = WATCHES[what]
    cells = cells_of(FIRST.replace("@", text))
    found = explained(cells)
    place = found.finding.place(What.CAUSE)
    assert (found.finding.cause, found.finding.variant) == ("module_hook_unreached", "of_module")
    # What reads the input's gradient is right where it is: the batch lacks the flag.
    asks = what == "the input's gradient"
    assert found.finding.tensors[0].names == (("x", "net[0]") if asks else ("net[0]",))
    blamed = "net(x).sum().backward()" if asks else ON_FIRST
    assert place is not None and place.source == blamed
    repaired = edited(cells, found.rewrites[0])
    assert added(cells, repaired) == [line.strip() for line in lines]
    run(repaired)


def test_of_several_modules_the_batch_is_named() -> None:
    text = "for layer in (net[0], net[2]):\n    layer.register_full_backward_hook(print)"
    cells = cells_of(FIRST.replace("@", text))
    found = explained(cells)
    assert found.finding.variant == "input" and found.finding.tensors[0].names == ("x",)
    lines = ["net(x.requires_grad_()).sum().backward()"]
    assert added(cells, edited(cells, found.rewrites[0])) == lines


def test_of_several_batches_none_is_named() -> None:
    text = "for layer in (net[0], net[2]):\n    layer.register_full_backward_hook(print)"
    cells = cells_of(FIRST.replace("@", text).replace("net(x)", "(net(x) + net(x + 0 * x[:1]))"))
    assert explained(cells).finding.tensors[0].names == ("x",)  # what is computed is no batch
    cells = cells_of(
        FIRST.replace("@", f"y = x * 2\n{text}").replace("net(x)", "(net(x) + net(y))")
    )
    found = explained(cells)
    assert found.finding.tensors == () and found.rewrites == ()
