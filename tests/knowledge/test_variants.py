"""Further causes of the same messages: small programs, what each is taken for, the line repaired.

A row is a notebook (cells split by `# %%`), the cause, its variant, and a line that the first
rewrite brings in ("" where none is honest).
"""

from __future__ import annotations

import pytest
from knowledge.played import edited, play
from knowledge.test_cases import run

from autograd_explain.render.topic import cells_of

TORCH = "# %%\nimport torch\nfrom torch import nn\n"

PROGRAMS = {
    "sum where the program sums": (
        """
x = torch.linspace(0, 1, 3, requires_grad=True)
y = x ** 2
print(y.sum())
# %%
y.backward()
""",
        "loss_not_scalar",
        "",
        "y.sum().backward()",
    ),
    "complex scalar": (
        """
z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
loss = (z * z).sum()
# %%
loss.backward()
""",
        "loss_not_scalar",
        "complex",
        "loss.real.backward()",
    ),
    "one of several roots": (
        """
x = torch.ones(3, requires_grad=True)
first, errors = x.sum(), x * 2
# %%
torch.autograd.backward([first, errors])
""",
        "loss_not_scalar",
        "",
        "torch.autograd.backward([first, errors.mean()])",
    ),
    "copy instead of the input": (
        """
x = torch.tensor([1.0, 2.0], requires_grad=True)
other = x.detach().clone().requires_grad_()
y = x.square().sum()
# %%
grads = torch.autograd.grad(y, other)
""",
        "unused_in_graph",
        "copy",
        "grads = torch.autograd.grad(y, x)",
    ),
    "name bound again after the forward pass": (
        """
x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x.square().sum()
x = x.detach().requires_grad_()
# %%
grads = torch.autograd.grad(y, x)
""",
        "unused_in_graph",
        "older",
        "grads = torch.autograd.grad(y, x, allow_unused=True)",
    ),
    "input detached inside the model": (
        """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)

    def forward(self, x):
        h = x.detach()
        return self.net(torch.tanh(h))
critic = Critic()
mixed = torch.rand(5, 3, requires_grad=True)
# %%
scores = critic(mixed)
slope, = torch.autograd.grad(scores.sum(), mixed, create_graph=True)
""",
        "unused_in_graph",
        "cut",
        "        h = x",
    ),
    "input through data and NumPy on two ways": (
        """
x = torch.rand(4, requires_grad=True)
w = torch.ones(4, requires_grad=True)
low, high = x.data * 2, x.detach().numpy()
# %%
y = (w * (low + torch.tensor(high))).sum()
g = torch.autograd.grad(y, [w, x])
""",
        "unused_in_graph",
        "cut",
        "g = torch.autograd.grad(y, [w, x], allow_unused=True)",
    ),
    "input behind no_grad": (
        """
encoder, head = nn.Linear(3, 3), nn.Linear(3, 1)
@torch.no_grad()
def encode(x):
    return encoder(x).relu()
x = torch.rand(2, 3, requires_grad=True)
# %%
value = head(encode(x)).sum()
saliency = torch.autograd.grad(outputs=value, inputs=x)[0]
""",
        "unused_in_graph",
        "cut",
        "def encode(x):",
    ),
    "input copied through NumPy": (
        """
net = nn.Linear(3, 1)
x = torch.rand(2, 3, requires_grad=True)
# %%
value = net(torch.from_numpy(x.detach().numpy())).sum()
saliency = torch.autograd.grad(value, x)[0]
""",
        "unused_in_graph",
        "cut",
        "value = net(x).sum()",
    ),
    "input in a no_grad block": (
        """
net = nn.Linear(3, 1)
x = torch.rand(2, 3, requires_grad=True)
# %%
with torch.no_grad():
    scale = net.weight.norm()
    centred = x - x.mean(0)
value = net(centred / scale).sum()
saliency = torch.autograd.grad(value, x)[0]
""",
        "unused_in_graph",
        "cut",
        "centred = x - x.mean(0)",
    ),
    "rows written by their own norm": (
        """
w = torch.rand(3, 2, requires_grad=True)
def unit(mat):
    out = mat * 1.0
    for row in out:
        length = row.norm()
        row /= length
    return out
# %%
unit(w).sum().backward()
assert w.grad is not None
""",
        "multi_view_written",
        "loop",
        "    out = torch.stack(rows)",
    ),
    "list of views written in a loop over pairs": (
        """
w = torch.rand(2, 3, requires_grad=True)
def centre(batch):
    channels = batch.unbind(dim=1)
    for channel, mean in zip(channels, (0.1, 0.2)):
        channel.sub_(mean)
    return torch.stack(channels, dim=1)
# %%
out = centre(w * 2)
out.sum().backward()
assert out.shape == (2, 3)
""",
        "multi_view_written",
        "",
        "        channels[i] = channel",
    ),
    "pieces written in the head of the loop": (
        """
w = torch.rand(2, 6, requires_grad=True)
h = w * 1
# %%
for piece in h.chunk(3, dim=1):
    piece -= piece.mean()
    piece /= piece.std()
h.pow(3).sum().backward()
assert w.grad is not None
""",
        "multi_view_written",
        "",
        "h = torch.cat(new_pieces, dim=1)",
    ),
    "part of a listed view": (
        """
w = torch.rand(2, 6, requires_grad=True)
parts = (w * 1).split(3, 1)
# %%
for part in parts:
    part[:, 0] = 1.0
torch.cat(parts).sum().backward()
""",
        "multi_view_written",
        "",
        "    part = part.clone()",
    ),
    "output written by a forward hook": (
        """
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
def damp(module, inputs, out):
    out *= 0.5
for layer in net:
    if isinstance(layer, nn.Tanh):
        layer.register_forward_hook(damp)
# %%
net(torch.ones(2, 3)).sum().backward()
""",
        "saved_value_overwritten",
        "own_output",
        "    return out",
    ),
    "head given to the optimizer, all frozen": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 2)
    def forward(self, x):
        return self.head(self.body(x))
net = Net()
net.requires_grad_(False)
opt = torch.optim.SGD(net.head.parameters(), lr=0.1)
# %%
net(torch.ones(1, 3)).sum().backward()
assert net.body.weight.grad is None and net.head.weight.grad is not None
""",
        "graph_cut",
        "frozen",
        "net.head.requires_grad_(True)",
    ),
    "layer replaced before a helper froze": (
        """
def freeze(module):
    for p in module.parameters():
        p.requires_grad_(False)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 9))
net[2] = nn.Linear(4, 2)
freeze(net)
# %%
net(torch.ones(1, 3)).sum().backward()
assert net[0].weight.grad is None and net[2].weight.grad is not None
""",
        "graph_cut",
        "frozen",
        "net[2].requires_grad_(True)",
    ),
    "head replaced and frozen in one function": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Linear(3, 3), nn.Linear(3, 9)
    def forward(self, x):
        return self.fc(torch.relu(self.body(x)))
def build():
    m = Net()
    m.fc = nn.Linear(3, 2)
    for p in m.parameters():
        p.requires_grad = False
    return m
model = build()
# %%
model(torch.ones(1, 3)).sum().backward()
assert model.body.weight.grad is None and model.fc.weight.grad is not None
""",
        "graph_cut",
        "frozen",
        "    m.fc.requires_grad_(True)",
    ),
    "part replaced and frozen in a constructor": (
        """
class Tuned(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
        self.body[2] = nn.Linear(4, 2)
        for p in self.body.parameters():
            p.requires_grad_(False)
    def forward(self, x):
        return self.body(x)
model = Tuned(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 9)))
# %%
model(torch.ones(1, 3)).sum().backward()
assert model.body[0].weight.grad is None and model.body[2].weight.grad is not None
""",
        "graph_cut",
        "frozen",
        "        self.body[2].requires_grad_(True)",
    ),
    "frozen with nothing named to learn": (
        """
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 9))
for p in model.parameters():
    p.requires_grad = False
opt = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
model(torch.ones(1, 3)).sum().backward()
""",
        "graph_cut",
        "frozen",
        "",
    ),
    "views kept by number in an object": (
        """
class Buffer:
    @torch.no_grad()
    def __init__(self, n):
        self.whole = torch.zeros(n, 2)
        self.rows = [self.whole[i] for i in range(n)]
    def add(self, i, value):
        self.rows[i] += value
buf = Buffer(3)
w = torch.ones(2, requires_grad=True)
# %
for i in range(3):
    buf.add(i, w * i)
buf.whole.sum().backward()
assert w.grad.tolist() == [3.0, 3.0]
""",
        "view_made_under_no_grad",
        "",
        "        self.whole[self.rows[i]] += value",
    ),
    "views of an object read elsewhere": (
        """
class Buffer:
    @torch.no_grad()
    def __init__(self, n):
        self.whole = torch.zeros(n, 2)
        self.rows = [self.whole[i] for i in range(n)]
    def add(self, i, value):
        self.rows[i] += value
    def row(self, i):
        return self.rows[i]
buf = Buffer(3)
w = torch.ones(2, requires_grad=True)
# %
buf.add(1, w)
""",
        "view_made_under_no_grad",
        "",
        "    def __init__(self, n):",
    ),
    "steps in the loop of the backwards": (
        """
first, second = nn.Linear(2, 2), nn.Linear(2, 2)
x = torch.ones(3, 2)
losses = [second(first(x)).pow(2).sum(), first(second(x)).pow(2).sum()]
opts = [torch.optim.SGD(n.parameters(), lr=0.1) for n in (first, second)]
# %%
for i, loss in enumerate(losses):
    loss.backward()
    opts[i].step()
""",
        "step_between_backwards",
        "shares_gradients",
        "    opts[i].step()",
    ),
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
    "starting value put into a leaf": (
        """
w = torch.randn(4, 4, requires_grad=True)
w[w < 0] = 0.0
# %%
torch.tanh(w).sum().backward()
assert w.grad is not None
""",
        "leaf_written",
        "index",
        "    w[w < 0] = 0.0",
    ),
    "leaf overwritten after its use": (
        """
x = torch.rand(3, requires_grad=True)
y = x * 2
x[y < 1] = 0.0
# %%
(x + y).sum().backward()
""",
        "leaf_written",
        "index",
        "x = x.clone()",
    ),
    "view written, the whole read later": (
        """
def bump(h):
    h = torch.sigmoid(h)
    rows = h[:, 1:]
    rows += 0.25
    return h
x = torch.zeros(2, 3, requires_grad=True)
# %%
out = bump(x)
assert out[0, 1] == 0.75
out.sum().backward()
""",
        "saved_value_overwritten",
        "alias",
        "    h = torch.sigmoid(h).clone()",
    ),
    "accuracy of a function as objective": (
        """
net = nn.Linear(4, 3)
x, y = torch.randn(12, 4), torch.randint(0, 3, (12,))
def objective(scores, labels):
    right = torch.argmax(scores, dim=-1) == labels
    return -right.float().sum() / len(labels)
# %%
loss = objective(net(x), y)
loss.backward()
""",
        "graph_cut",
        "integer",
        "    return nn.functional.cross_entropy(scores, labels)",
    ),
    "accuracy in one line": (
        """
net = nn.Linear(4, 3)
x, y = torch.randn(12, 4), torch.randint(0, 3, (12,))
# %%
out = net(x)
loss = 1 - (out.argmax(1) == y).float().mean()
loss.backward()
""",
        "graph_cut",
        "integer",
        "loss = nn.functional.cross_entropy(out, y)",
    ),
    "accuracy of probabilities": (
        """
net = nn.Linear(4, 3)
x, y = torch.randn(12, 4), torch.randint(0, 3, (12,))
# %%
out = net(x).softmax(1)
loss = 1 - (out.argmax(1) == y).float().mean()
loss.backward()
""",
        "graph_cut",
        "integer",
        "",
    ),
    "second of several inputs": (
        """
used, idle = nn.Linear(2, 1), nn.Linear(2, 1)
loss = used(torch.ones(1, 2)).sum()
# %%
grads = torch.autograd.grad(loss, [used.weight, idle.weight])
""",
        "unused_in_graph",
        "",
        "grads = torch.autograd.grad(loss, [used.weight, idle.weight], allow_unused=True)",
    ),
    "frozen parameters": (
        """
net = nn.Linear(2, 1)
net.bias.requires_grad_(False)
loss = net(torch.ones(1, 2)).sum()
# %%
grads = torch.autograd.grad(loss, list(net.parameters()))
""",
        "input_without_grad",
        "frozen",
        "grads = torch.autograd.grad(loss, [p for p in list(net.parameters()) if p.requires_grad])",
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
    "generator used up": (
        """
net = nn.Linear(2, 1)
params = net.parameters()
print(sum(p.numel() for p in params))
# %%
optimizer = torch.optim.SGD(params, lr=0.1)
""",
        "optimizer_given_nothing",
        "used_up",
        "params = list(net.parameters())",
    ),
    "tensor as a plain attribute": (
        """
class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = torch.zeros(3, requires_grad=True)
shift = Shift()
# %%
optimizer = torch.optim.SGD(shift.parameters(), lr=0.1)
""",
        "optimizer_given_nothing",
        "plain_tensor",
        "        self.by = nn.Parameter(torch.zeros(3))",
    ),
    "everything frozen": (
        """
net = nn.Linear(2, 1).requires_grad_(False)
# %%
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
""",
        "optimizer_given_nothing",
        "frozen",
        "",
    ),
    "single tensor": (
        """
w = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD(w, lr=0.1)
""",
        "optimizer_given_no_tensors",
        "tensor",
        "optimizer = torch.optim.SGD([w], lr=0.1)",
    ),
    "state dict": (
        """
net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.state_dict(), lr=0.1)
""",
        "optimizer_given_no_tensors",
        "",
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)",
    ),
    "generator in a list": (
        """
net = nn.Linear(2, 1)
optimizer = torch.optim.SGD([net.parameters()], lr=0.1)
""",
        "optimizer_given_no_tensors",
        "",
        "optimizer = torch.optim.SGD([*net.parameters()], lr=0.1)",
    ),
    "dict of tensors": (
        """
weights = {"a": torch.ones(2, requires_grad=True)}
optimizer = torch.optim.SGD(weights, lr=0.1)
""",
        "optimizer_given_no_tensors",
        "",
        "optimizer = torch.optim.SGD(list(weights.values()), lr=0.1)",
    ),
    "tied weights": (
        """
a, b = nn.Linear(2, 2), nn.Linear(2, 2)
b.weight = a.weight
# %%
groups = [{"params": a.parameters()}, {"params": b.parameters(), "lr": 1.0}]
optimizer = torch.optim.SGD(groups, lr=0.1)
""",
        "parameter_in_two_groups",
        "",
        'groups = [{"params": a.parameters()}, {"params": [p for p in b.parameters() '
        'if all(p is not q for q in a.parameters())], "lr": 1.0}]',
    ),
    "duplicates in one group": (
        """
a, b = nn.Linear(2, 2), nn.Linear(2, 2)
b.weight = a.weight
# %%
optimizer = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
""",
        "parameter_in_two_groups",
        "duplicate",
        "optimizer = "
        "torch.optim.SGD(list(dict.fromkeys([*a.parameters(), *b.parameters()])), lr=0.1)",
    ),
    "number of groups": (
        """
net = nn.Linear(2, 1)
saved = torch.optim.SGD([{"params": [net.weight]}, {"params": [net.bias]}], lr=0.1).state_dict()
# %%
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
optimizer.load_state_dict(saved)
""",
        "optimizer_state_of_another_model",
        "groups",
        "",
    ),
    "dense gradient for SparseAdam": (
        """
net = nn.Linear(2, 1)
optimizer = torch.optim.SparseAdam(net.parameters(), lr=0.1)
# %%
net(torch.ones(1, 2)).sum().backward()
optimizer.step()
""",
        "sparse_gradient_refused",
        "dense",
        "optimizer = torch.optim.Adam(net.parameters(), lr=0.1)",
    ),
    "scheduler in the outer loop": (
        """
net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
# %%
for epoch in range(2):
    scheduler.step()
    for batch in range(2):
        optimizer.zero_grad()
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
""",
        "scheduler_before_optimizer",
        "",
        "    scheduler.step()",
    ),
    "state loaded after the scheduler was made": (
        """
net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
torch.optim.lr_scheduler.StepLR(optimizer, 1)
saved = optimizer.state_dict()
# %%
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, last_epoch=3)
optimizer.load_state_dict(saved)
""",
        "scheduler_resumed_without_state",
        "order",
        "optimizer.load_state_dict(saved)",
    ),
    "too few steps planned": (
        """
optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2)
# %%
for _ in range(3):
    optimizer.step()
    scheduler.step()
""",
        "scheduler_stepped_too_often",
        "short",
        "",
    ),
    "unscaled twice": (
        """
w = nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([w], lr=0.1)
scaler = torch.amp.GradScaler("cpu")
# %%
scaler.scale(w.sum()).backward()
scaler.unscale_(optimizer)
nn.utils.clip_grad_norm_([w], 1.0)
scaler.unscale_(optimizer)
scaler.step(optimizer)
scaler.update()
""",
        "scaler_used_twice",
        "again",
        "",
    ),
    "update without a step": (
        """
scaler = torch.amp.GradScaler("cpu")
scaler.scale(torch.ones(1))
# %%
scaler.update()
""",
        "scaler_without_gradients",
        "update",
        "",
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
    "parameter of a layer without an optimizer": (
        """
layer = nn.Linear(2, 2)
layer.weight = torch.eye(2)
""",
        "parameter_replaced_by_tensor",
        "",
        "layer.weight = nn.Parameter(torch.eye(2))",
    ),
    "parameter computed": (
        """
layer = nn.Linear(2, 2)
# %%
layer.weight = layer.weight * 0.5
""",
        "parameter_replaced_by_tensor",
        "computed",
        "",
    ),
    "gradients cleared too soon": (
        """
net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
net(torch.ones(1, 2)).sum().backward()
optimizer.step()
optimizer.zero_grad()
norm = net.weight.grad.norm()
""",
        "no_gradient_yet",
        "cleared",
        "optimizer.zero_grad()",
    ),
    "no backward": (
        """
w = torch.ones(2, requires_grad=True)
loss = (w * 2).sum()
# %%
w.data -= 0.1 * w.grad
""",
        "no_gradient_yet",
        "no_backward",
        "",
    ),
    "layer that the forward pass skips": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(2, 1)
        self.idle = nn.Linear(2, 1)
    def forward(self, x):
        return self.used(x)
net = Net()
net(torch.ones(1, 2)).sum().backward()
# %%
norm = net.idle.weight.grad.norm()
""",
        "no_gradient_yet",
        "unused",
        "",
    ),
    "leaf without the flag": (
        """
w = torch.ones(2)
v = torch.ones(2, requires_grad=True)
(w * v).sum().backward()
# %%
step = w.grad.clone()
""",
        "no_gradient_yet",
        "no_flag",
        "",
    ),
    "math.sqrt of a loss": (
        """
import math
w = torch.tensor(4.0, requires_grad=True)
# %%
root = math.sqrt(w * w)
""",
        "scalar_conversion",
        "",
        "root = math.sqrt((w * w).detach())",
    ),
    "gradient penalty": (
        """
x = torch.ones(2, requires_grad=True)
loss = (x ** 3).sum()
# %%
loss.backward(create_graph=True)
penalty = x.grad.square().sum()
penalty.backward()
""",
        "create_graph_cycle",
        "again",
        "",
    ),
    "detach_ on a gradient view": (
        """
x = torch.ones(4, requires_grad=True)
halves = (x * 2).view(2, 2)
# %%
state = halves.detach_()
""",
        "detach_in_place_on_view",
        "",
        "state = halves.detach()",
    ),
    "result of another operation written out": (
        """
w = torch.ones(2, requires_grad=True)
buffer = torch.empty(2)
# %%
total = torch.add(w, 1, out=buffer).sum()
""",
        "out_argument_with_grad",
        "",
        "total = torch.add(w, 1).sum()",
    ),
    "gradient that is a number": (
        """
x = torch.ones(2, requires_grad=True)
y = x * 2
# %%
torch.autograd.backward([y], [1])
""",
        "output_gradient_mismatch",
        "type",
        "torch.autograd.backward([y], [torch.ones_like(y)])",
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
    "shifted write over the input": (
        """
x = torch.arange(4.0)
torch.add(x[:-1], 1, out=x[1:])
""",
        "written_tensor_overlaps",
        "input",
        "",
    ),
    "hessian of a vector": (
        """
from torch.autograd.functional import hessian
# %%
curvature = hessian(lambda x: x * 2, torch.ones(2))
""",
        "functional_argument",
        "hessian",
        "",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    text, cause, variant, line = PROGRAMS[name]
    cells = cells_of(TORCH + "# %%" + text)
    found = play(cells)
    assert found.trouble == ""
    assert found.diagnosis is not None, found.output
    finding, rewrites = found.diagnosis.finding, found.diagnosis.rewrites
    assert (finding.cause, finding.variant) == (cause, variant)
    if not line:
        assert rewrites == () or name == "unscaled twice"
        return
    assert rewrites
    repaired = edited(cells, rewrites[0])
    assert line in [row for cell in repaired for row in cell.splitlines()]
    run(repaired)
