"""Writes in place: to leaves, views and saved values."""

from __future__ import annotations

PROGRAMS = {
    "a looked-up embedding that renormalises what a method handed out": (
        """
class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(4, 3)
        self.item = nn.Embedding(5, 3, max_norm=0.5)
    def of_user(self, ids):
        return self.user(ids)
    def catalogue(self):
        return self.item.weight
def scores_of(model, ids):
    return model.of_user(ids) @ model.catalogue().t()
model, ids = Towers(), torch.tensor([0, 1])
# %%
scores = scores_of(model, ids)
near = model.item(ids)
(scores.square().mean() - near.sum()).backward()
""",
        "saved_value_overwritten",
        "max_norm",
        "    return model.of_user(ids) @ model.catalogue().t().clone()",
    ),
    "two of the views that one unpacking made": (
        """
boxes = torch.rand(4, 3, requires_grad=True) * 2
dx, dy, w = boxes.unbind(1)
dx *= 2
dy *= 3
(dx + dy + w).sum().backward()
""",
        "multi_view_written",
        "",
        "dy = dy * 3",
    ),
    "the one of two modules that ran": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3, 3))
        self.drop = nn.Dropout(0.5, inplace=True)
        self.squash = nn.Sequential(nn.Hardtanh(inplace=True), nn.Linear(3, 1))
    def forward(self, x):
        return self.squash(self.w[0]).sum() + (self.drop(self.w * 1) @ x).sum()
net = Net()
net(torch.ones(3)).backward()
""",
        "view_of_leaf_written",
        "module",
        "        self.squash = nn.Sequential(nn.Hardtanh(), nn.Linear(3, 1))",
    ),
    "a parameter written within a larger expression": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(3))
    def forward(self, x):
        return (x * self.w.clamp_(0, 1)).sum()
net = Net()
net(torch.ones(3)).backward()
assert net.w.grad is not None
""",
        "leaf_written",
        "arithmetic",
        "        return (x * self.w.clone().clamp_(0, 1)).sum()",
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
    "a view read after its base was written": (
        """
class Store:
    def __init__(self):
        self.base = torch.zeros(4)
        with torch.inference_mode():
            self.head = self.base[:2]
store = Store()
w = torch.ones(4, requires_grad=True)
store.base.mul_(w)
# %
(store.head * 2).sum().backward()
""",
        "view_made_under_no_grad",
        "base",
        "        self.head = self.base[:2]",
    ),
    "a local view read after its base was written": (
        """
w = torch.ones(4, requires_grad=True)
def loss(base):
    with torch.no_grad():
        head = base[:2]
    base += w
    return head.view(-1).sum()
# %
loss(torch.zeros(4)).backward()
""",
        "view_made_under_no_grad",
        "base",
        "    head = base[:2]",
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
    "shifted write over the input": (
        """
x = torch.arange(4.0)
torch.add(x[:-1], 1, out=x[1:])
""",
        "written_tensor_overlaps",
        "input",
        "",
    ),
    "parameter that a property hands on": (
        """
class Codebook:
    def __init__(self, layers):
        self.layers = layers
    @property
    def codes(self):
        return self.layers["codes"].weight
book = Codebook({"codes": nn.Linear(2, 3)})
# %%
for row in range(3):
    book.codes[row] += 0.5
""",
        "view_of_leaf_written",
        "init",
        "    with torch.no_grad():",
    ),
    "parameter that a base class' property hands on": (
        """
class Owner(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(2, 3)
    @property
    def last(self):
        return self.head.bias
class Net(Owner):
    def shrink(self):
        self.last.mul_(0.5)
net = Net()
# %%
net.shrink()
""",
        "leaf_written",
        "init",
        "        with torch.no_grad():",
    ),
    "two weights through a shared in-place module": (
        """
act = [nn.ReLU(inplace=True)]
class Fuse(nn.Module):
    def __init__(self, shared):
        super().__init__()
        self.first, self.second = nn.Parameter(torch.rand(2)), nn.Parameter(torch.rand(3))
        self.act = shared[0]
    def forward(self, x):
        first = self.act(self.first)
        second = self.act(self.second)
        return self.act(first.sum() * second.sum() * x)
# %%
net = Fuse(act)
net(torch.rand(2)).sum().backward()
assert net.second.grad is not None
""",
        "leaf_written",
        "module",
        "        second = self.act(self.second.clone())",
    ),
    "weight through an in-place module made in the class": (
        """
class Fuse(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.rand(2))
        self.squash = nn.Sequential(nn.Hardswish(inplace=True), nn.Softmax(dim=0))
    def forward(self, x):
        return (self.squash(self.gate) * x).sum()
# %%
Fuse()(torch.rand(2)).backward()
""",
        "leaf_written",
        "module",
        "        self.squash = nn.Sequential(nn.Hardswish(), nn.Softmax(dim=0))",
    ),
    "part of a leaf through an in-place module": (
        """
scores = torch.rand(4, 2, requires_grad=True)
drop = nn.Dropout(0.5, True)
def pick(row):
    kept = drop(scores[row])
    return kept.sum()
# %%
pick(1).backward()
""",
        "view_of_leaf_written",
        "module",
        "drop = nn.Dropout(0.5)",
    ),
    "weights kept positive by an in-place module": (
        """
act = nn.ReLU(inplace=True)
net = nn.Linear(2, 1)
# %%
act(net.weight)
""",
        "leaf_written",
        "init",
        "with torch.no_grad():",
    ),
    "dict of parts from a method, its tensor scaled before they are used elsewhere": (
        """
class Fields(nn.Module):
    names = ("user", "item")
    def parts(self, table):
        return {name: part for name, part in zip(self.names, table.split(2, dim=1))}
    def forward(self, table, weight):
        table = table + 1.0
        found = self.parts(table)
        table.mul_(weight)
        return self.cross(found) + table.sum()
    def cross(self, found):
        return (found["user"] * found["item"]).sum()
# %%
x = torch.rand(3, 4, requires_grad=True)
loss = Fields()(x, torch.rand(3, 1))
loss.backward()
""",
        "multi_view_written",
        "base",
        "        table.mul_(weight)",
    ),
    "parts beside a value of the tensor as it was": (
        """
x = torch.rand(2, 4, requires_grad=True)
def halves(y):
    total = y.sum()
    return [*y.chunk(2, dim=1)], total
# %%
y = x.exp()
parts, total = halves(y)
y *= 2
(parts[0] * y[:, :2]).sum().backward()
""",
        "multi_view_written",
        "base",
        "y = y * 2",
    ),
    "list saved by a comprehension, then scaled by a helper": (
        """
def shrink(parts, most=0.1):
    for part in parts:
        part *= most
w = torch.rand(3, requires_grad=True)
# %%
steps = [w * 2, w.exp() * 3]
size = torch.stack([(step * step).sum() for step in steps]).sum()
shrink(steps)
(size + sum(steps).sum()).backward()
assert torch.allclose(w.grad, 8 * w + 18 * (2 * w).exp() + 0.2 + 0.3 * w.exp())
""",
        "saved_value_overwritten",
        "",
        "size = torch.stack([(step.clone() * step.clone()).sum() for step in steps]).sum()",
    ),
    "list of parts, one of them named before the tensor is masked": (
        """
x = torch.rand(3, 3, 2, requires_grad=True)
# %%
y = (x * 2).view(3, 3, 2)
parts = list(y.unbind(1))
first = parts[0]
y[:, 1] = 0
loss = (first * parts[1]).sum() + y.sum()
loss.backward()
assert torch.equal(x.grad[:, 1], torch.zeros(3, 2))
""",
        "multi_view_written",
        "base",
        "y[:, 1] = 0",
    ),
}
