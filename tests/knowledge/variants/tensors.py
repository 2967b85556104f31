"""Flags, kinds and copies of single tensors."""

from __future__ import annotations

PROGRAMS = {
    "hidden leaf updated in place under no_grad": (
        """
x = torch.ones(2, 3)
coef = torch.rand(3, requires_grad=True) - 0.5
# %%
for _ in range(2):
    loss = (x @ coef).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        coef -= 0.1 * coef.grad
    coef.grad = None
""",
        "cast_made_non_leaf",
        "",
        "coef = (torch.rand(3) - 0.5).requires_grad_()",
    ),
    "integer constructor with the flag": (
        """
levels = torch.tensor([1, 2, 3], requires_grad=True)
""",
        "requires_grad_on_integer",
        "",
        "levels = torch.tensor([1, 2, 3], requires_grad=True, dtype=torch.float32)",
    ),
    "integer parameter": (
        """
table = nn.Parameter(torch.arange(4))
""",
        "requires_grad_on_integer",
        "",
        "table = nn.Parameter(torch.arange(4, dtype=torch.float32))",
    ),
    "flag of a result switched on": (
        """
w = torch.ones(2, requires_grad=True)
h = w * 2
# %%
h.requires_grad = False
""",
        "requires_grad_on_non_leaf",
        "",
        "h = h.detach()",
    ),
    "deep copy of a result": (
        """
import copy
w = torch.ones(2, requires_grad=True)
h = w * 2
# %%
snapshot = copy.deepcopy(h)
""",
        "deepcopy_non_leaf",
        "tensor",
        "snapshot = h.detach().clone()",
    ),
    "deep copy of an activation that a penalty reads": (
        """
import copy
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)
    def forward(self, x):
        self.last = self.layer(x)
        return self.last
net = Net()
loss = net(torch.ones(1, 2)).sum() + net.last.square().sum()
# %%
best = copy.deepcopy(net)
""",
        "deepcopy_non_leaf",
        "",
        "net.last = None",
    ),
    "deep copy of layers with an imported weight norm": (
        """
from copy import deepcopy
from torch.nn.utils import clip_grad_norm_, weight_norm
class Block(nn.Module):
    def __init__(self, width, weight_norm_too=True):
        super().__init__()
        layer = nn.Linear(width, width)
        self.layer = weight_norm(layer) if weight_norm_too else layer
    def stacked(self, n):
        return nn.ModuleList(deepcopy(self) for _ in range(n))
# %%
blocks = Block(2).stacked(3)
clip_grad_norm_(blocks.parameters(), 1.0)
""",
        "deepcopy_non_leaf",
        "norm",
        "from torch.nn.utils.parametrizations import weight_norm",
    ),
    "deep copy of a critic with spectral norm": (
        """
import copy
import torch.nn.utils as U
critic = nn.Sequential(U.spectral_norm(nn.Linear(2, 3)), U.spectral_norm(nn.Linear(3, 1)))
critic(torch.ones(4, 2)).sum().backward()
# %%
best = {"critic": copy.deepcopy(critic)}
""",
        "deepcopy_non_leaf",
        "norm",
        "critic = nn.Sequential(U.parametrizations.spectral_norm(nn.Linear(2, 3)), "
        "U.parametrizations.spectral_norm(nn.Linear(3, 1)))",
    ),
    "weight norm that the program takes away again": (
        """
import copy
net = nn.utils.weight_norm(nn.Linear(2, 1))
# %%
best = copy.deepcopy(net)
nn.utils.remove_weight_norm(best)
""",
        "deepcopy_non_leaf",
        "norm",
        "",
    ),
    "weight norm of a recurrent layer": (
        """
import copy
net = nn.utils.weight_norm(nn.GRU(2, 2), "weight_hh_l0")
# %%
best = copy.deepcopy(net)
""",
        "deepcopy_non_leaf",
        "norm",
        "",
    ),
    "deep copy in a function, of what only the notebook can name": (
        """
import copy
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)
    def forward(self, x):
        self.last = self.layer(x)
        return self.last
def keep(models):
    return [copy.deepcopy(m) for m in models]
net = Net()
loss = net(torch.ones(1, 2)).sum() + net.last.square().sum()
# %%
best = keep([net])
""",
        "deepcopy_non_leaf",
        "",
        "",
    ),
    "inference tensors unpacked together": (
        """
head = nn.Linear(3, 2)
def predicted():
    return [(torch.rand(4, 3) * 2, torch.arange(4) % 2, "name") for _ in range(2)]
batches = torch.inference_mode()(predicted)()
# %%
for feats, labels, name in batches:
    loss = nn.functional.cross_entropy(head(feats), labels)
    loss.backward()
""",
        "inference_tensor",
        "elsewhere",
        "    feats, labels = feats.clone(), labels.clone()",
    ),
    "inference tensor written": (
        """
with torch.inference_mode():
    running = torch.zeros(3)
# %%
running += 1
""",
        "inference_tensor",
        "written",
        "with torch.no_grad():",
    ),
    "inference tensor from a decorated function": (
        """
@torch.inference_mode()
def encode(x):
    return x * 2
w = torch.ones(3, requires_grad=True)
code = encode(torch.ones(3))
# %%
loss = (w * code).sum()
""",
        "inference_tensor",
        "",
        "@torch.no_grad()",
    ),
    "inference tensor that should require grad": (
        """
with torch.inference_mode():
    start = torch.zeros(3)
# %%
start.requires_grad_()
""",
        "inference_tensor",
        "flag",
        "with torch.no_grad():",
    ),
    "retain_grad behind a detach": (
        """
w = torch.ones(2, requires_grad=True)
h = (w * 2).detach()
# %%
h.retain_grad()
""",
        "retain_grad_without_grad",
        "cut",
        "",
    ),
    "zero instead of None": (
        """
w = torch.ones(2, requires_grad=True)
w.grad = 0
""",
        "grad_assigned_wrongly",
        "type",
        "w.grad = None",
    ),
    "gradient of another size": (
        """
w = torch.ones(2, requires_grad=True)
w.grad = torch.ones(3)
""",
        "grad_assigned_wrongly",
        "size",
        "",
    ),
}
