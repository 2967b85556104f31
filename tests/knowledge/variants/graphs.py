"""What a graph reaches: losses, cuts, inputs, outputs."""

from __future__ import annotations

PROGRAMS = {
    "forward mode through an operation without a formula": (
        """
import torch.autograd.forward_ad as fwAD
points = torch.zeros(2, 2)
# %%
with fwAD.dual_level():
    moved = fwAD.make_dual(points, torch.ones(2, 2))
    distances = torch.cdist(moved * 2, points)
""",
        "forward_ad_unsupported",
        "",
        "",
    ),
    "a copy of the network is adapted": (
        """
import copy
net = nn.Linear(2, 1)
x, y = torch.rand(6, 2), torch.rand(6, 1)
def adapted(model, steps=2):
    fast = copy.deepcopy(model)
    for _ in range(steps):
        grads = torch.autograd.grad((fast(x) - y).square().mean(), fast.parameters())
        for p, g in zip(fast.parameters(), grads):
            p.data -= 0.1 * g
    return fast
# %%
fast = adapted(net)
outer = (fast(x) - y).square().mean()
grads = torch.autograd.grad(outer, list(net.parameters()))
""",
        "unused_in_graph",
        "cut",
        "",
    ),
    "a number wrapped to be differentiated": (
        """
a, b = torch.rand(3, requires_grad=True), torch.rand(3, requires_grad=True)
def total(weight=0.3):
    fit, size = (a * b).sum(), b.square().mean()
    return torch.tensor(fit + weight * size, requires_grad=True)
# %%
total().backward()
""",
        "tensor_from_tensor",
        "graph",
        "    return (fit + weight * size).clone()",
    ),
    "attention that is differentiated twice": (
        """
layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
x = torch.rand(2, 3, 8, requires_grad=True)
# %%
def penalty(x):
    out = layer(x)
    slope, = torch.autograd.grad(out.square().sum(), x, create_graph=True)
    return slope.square().mean()
loss = penalty(x)
loss.backward()
""",
        "no_second_derivative",
        "kernel",
        "    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):",
    ),
    "attention of a critic whose scores a helper differentiates": (
        """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.score = nn.Linear(8, 1)
    def forward(self, x):
        tokens = self.body(x)
        return self.score(tokens[:, 0]).squeeze(-1)
def r1(real, scores):
    slope, = torch.autograd.grad(scores.sum(), real, create_graph=True)
    return slope.square().flatten(1).sum(1).mean()
critic = Critic()
# %%
real = torch.rand(2, 3, 8, requires_grad=True)
real_scores = critic(real)
penalty = r1(real, real_scores)
(nn.functional.softplus(-real_scores).mean() + penalty).backward()
""",
        "no_second_derivative",
        "kernel",
        "        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):",
    ),
    "attention of one's own": (
        """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return nn.functional.scaled_dot_product_attention(q, k, v)
block = Block()
# %%
x = torch.rand(2, 1, 3, 8, requires_grad=True)
energy = block(x).sum()
force = torch.autograd.grad(energy, x, create_graph=True)[0]
(force - 1).square().mean().backward()
""",
        "no_second_derivative",
        "kernel",
        "        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):",
    ),
    "parts of one forward pass, one after the other": (
        """
net = nn.Linear(3, 4)
z = net(torch.randn(6, 3)).tanh()
parts = [z[:3], z[3:]]
for part in parts:
    part.pow(2).sum().backward()
""",
        "second_backward",
        "computed_once",
        "",  # a detached part would have nothing to go backward to
    ),
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
loss = (z.conj() * z).sum() / (z.abs() ** 2).sum()
# %%
loss.backward()
""",
        "loss_not_scalar",
        "complex",
        "loss.real.backward()",
    ),
    "complex squares beside real ones": (
        """
field = torch.ones(3, dtype=torch.complex64, requires_grad=True)
scale = torch.ones(2, requires_grad=True)
def misfit(got, wanted):
    return torch.mean(torch.square(got - wanted))
power = (field[1:] - field[:-1]) * (field[1:] - field[:-1])
# %%
loss = misfit(field, 2j) + power.sum() + field.pow(2).sum() + scale.pow(2).sum()
loss.backward()
""",
        "loss_not_scalar",
        "complex",
        "loss = misfit(field, 2j) + power.sum() + field.abs().pow(2).sum() + scale.pow(2).sum()",
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
    "a frozen model that is given what the prompt was not added to": (
        """
net = nn.Linear(3, 2).requires_grad_(False)
prompt = nn.Parameter(torch.zeros(3))
x = torch.rand(4, 3)
# %%
tokens = x + prompt
shape = tokens.shape
loss = net(x).square().mean()
loss.backward()
""",
        "graph_cut",
        "dead",
        "loss = net(tokens).square().mean()",
    ),
    "a frozen model beside a prompt of another use": (
        """
net = nn.Linear(3, 2).requires_grad_(False)
prompt = nn.Parameter(torch.zeros(3))
x = torch.rand(4, 3)
# %%
tokens = x + prompt
size = tokens.square().mean().item()
loss = net(x).square().mean()
loss.backward()
""",
        "graph_cut",
        "frozen",
        "",
    ),
    "edges of what was not deformed": (
        """
def near(pos, cell):
    return ((pos[None] - pos[:, None]) @ cell).square().sum(-1)
def properties(net, pos, cell):
    strain = torch.zeros(3, 3, requires_grad=True)
    edges = near(pos, cell)
    deform = torch.eye(3) + 0.5 * (strain + strain.T)
    pos_def, cell_def = pos @ deform, cell @ deform
    energy = net(edges).sum() / len(pos_def)
    stress, = torch.autograd.grad(energy, [strain])
    return stress / torch.linalg.det(cell_def)
# %%
stress = properties(nn.Linear(4, 1), torch.rand(4, 3), torch.eye(3))
""",
        "unused_in_graph",
        "dead",
        "    edges = near(pos_def, cell_def)",
    ),
    "the sample is drawn and the mean decoded": (
        """
enc, dec = nn.Linear(3, 4), nn.Linear(2, 3)
def slopes(x):
    mu, logvar = enc(x).chunk(2, dim=-1)
    eps = torch.randn_like(mu)
    std = torch.exp(0.5 * logvar)
    z = mu + eps * std
    loss = (dec(mu) - x).square().mean()
    return torch.autograd.grad(loss, [mu, logvar])
# %%
found = slopes(torch.rand(4, 3))
""",
        "unused_in_graph",
        "dead",
        "    loss = (dec(z) - x).square().mean()",
    ),
    "a perturbed image beside the one that is compared": (
        """
net = nn.Linear(3, 3)
x = torch.rand(4, 3)
# %%
delta = torch.zeros_like(x, requires_grad=True)
moved = (x + delta).clamp(0, 1)
# %%
loss = nn.functional.mse_loss(net(x), x)
slope, = torch.autograd.grad(loss, delta)
""",
        "unused_in_graph",
        "dead",
        "loss = nn.functional.mse_loss(net(moved), x)",
    ),
    "a gate that the other of two losses reads": (
        """
net, first, second = nn.Linear(3, 3), nn.Linear(3, 1), nn.Linear(3, 1)
gate, x = torch.ones(3, requires_grad=True), torch.rand(4, 3)
h = net(x)
gated = h * gate
# %%
a, b = first(h).mean(), second(gated).mean()
slope, = torch.autograd.grad(a, gate)
""",
        "unused_in_graph",
        "",
        "slope, = torch.autograd.grad(a, gate, allow_unused=True)",
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
        "flag_set_late",
        "",
        "y = x.square().sum()",
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
    "parameter given to the optimizer, frozen with its module": (
        """
class Tuned(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body, self.prompt = body, nn.Parameter(torch.zeros(3))
    def forward(self, x):
        return self.body(x + self.prompt)
def freeze(module):
    for p in module.parameters():
        p.requires_grad = False
    return module
net = freeze(Tuned(nn.Linear(3, 2)))
opt = torch.optim.SGD([net.prompt], lr=0.1)
# %%
net(torch.ones(1, 3)).sum().backward()
assert net.body.weight.grad is None and net.prompt.grad is not None
""",
        "graph_cut",
        "frozen",
        "net.prompt.requires_grad_(True)",
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
        "grads = torch.autograd.grad(loss, [p for p in net.parameters() if p.requires_grad])",
    ),
    "a gradient summed over another dimension than broadcasting added": (
        """
class Limited(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.save_for_backward(x, limit)
        return torch.minimum(x, limit)
    @staticmethod
    def backward(ctx, grad):
        x, limit = ctx.saved_tensors
        beyond = (x > limit).to(grad.dtype)
        of_limit = (grad * beyond).sum(dim=-1)
        return grad * (1 - beyond), of_limit
x = torch.rand(4, 3, requires_grad=True)
limit = torch.full((3,), 0.5, requires_grad=True)
# %%
Limited.apply(x, limit).sum().backward()
""",
        "gradient_of_wrong_shape",
        "",
        "        of_limit = (grad * beyond).sum_to_size(limit.shape)",
    ),
    "a loss taken again by an optimizer's step, which updates leaves without recording": (
        """
class Twice(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self, closure):
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad, alpha=0.1)
        closure()
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(p.grad, alpha=0.2)
net = nn.Linear(2, 1)
opt = Twice(net.parameters(), {})
def closure():
    net.zero_grad()
    net(torch.ones(1, 2)).square().sum().backward()
# %%
closure()
opt.step(closure)
""",
        "grad_mode_off",
        "decorator",
        "            closure()",
    ),
    "what code without a source computed before the loop, which a function reads in every round": (
        """
table = nn.Embedding(5, 3)
exec("def encode(ids): return table(ids).mean(0)")
# %%
condition = encode(torch.tensor([0, 2]))
def loss_on(row):
    return (row * condition).square().mean()
# %%
for step in range(3):
    loss = loss_on(torch.full((3,), step + 1.0))
    loss.backward()
""",
        "second_backward",
        "computed_once",
        "    condition = encode(torch.tensor([0, 2]))",
    ),
    "a pair of results that a module keeps, which is copied": (
        """
class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.scale = nn.Linear(2, 1), nn.Linear(2, 1)
        self.stats = None
    def forward(self, x):
        self.stats = (self.mean(x), self.scale(x))
        return self.stats[0] * self.stats[1]
net = nn.Sequential(Split())
# %%
import copy
net(torch.ones(1, 2)).sum().backward()
average = copy.deepcopy(net)
""",
        "deepcopy_non_leaf",
        "",
        "net[0].stats = None",
    ),
    "a hook that writes a part of the output which it was given": (
        """
def drop(module, args, out):
    top = out.max()
    out[out == top] = 0
net = nn.Sequential(nn.Linear(2, 3), nn.Sigmoid(), nn.Linear(3, 1))
net[1].register_forward_hook(drop)
# %%
net(torch.ones(4, 2)).sum().backward()
""",
        "saved_value_overwritten",
        "own_output",
        "    out = out.clone()",
    ),
    "a gradient summed to a number for an input of one element": (
        """
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x, slope)
        return x * torch.sigmoid(slope * x)
    @staticmethod
    def backward(ctx, grad):
        x, b = ctx.saved_tensors
        s = torch.sigmoid(b * x)
        return grad * s * (1 + b * x * (1 - s)), (grad * x * x * s * (1 - s)).sum()
x = torch.rand(4, 3, requires_grad=True)
slope = torch.ones(1, requires_grad=True)
# %%
Swish.apply(x, slope).sum().backward()
""",
        "gradient_of_wrong_shape",
        "",
        "        return grad * s * (1 + b * x * (1 - s)), "
        "(grad * x * x * s * (1 - s)).sum().reshape(b.shape)",
    ),
    "gradients of two inputs that forward broadcasts by a view": (
        """
class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain, shift):
        ctx.save_for_backward(x, gain)
        return x * gain.view(1, -1, 1, 1) + shift[None, :, None, None]
    @staticmethod
    def backward(ctx, grad):
        x, gain = ctx.saved_tensors
        return grad * gain.view(1, -1, 1, 1), (grad * x).sum(), grad.sum()
x = torch.rand(2, 3, 4, 4)
gain, shift = torch.ones(3, requires_grad=True), torch.zeros(3, requires_grad=True)
# %%
Affine.apply(x, gain, shift).square().sum().backward()
""",
        "gradient_of_wrong_shape",
        "",
        "        return grad * gain.view(1, -1, 1, 1), "
        "(grad * x).sum((0, 2, 3)), grad.sum((0, 2, 3))",
    ),
    "the same by torch.sum, which has no size to sum to": (
        """
class Limited(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, limit):
        ctx.save_for_backward(x, limit)
        return torch.minimum(x, limit)
    @staticmethod
    def backward(ctx, grad):
        x, limit = ctx.saved_tensors
        beyond = (x > limit).to(grad.dtype)
        of_limit = torch.sum(grad * beyond, dim=-1)
        return grad * (1 - beyond), of_limit
x = torch.rand(4, 3, requires_grad=True)
limit = torch.full((3,), 0.5, requires_grad=True)
# %%
Limited.apply(x, limit).sum().backward()
""",
        "gradient_of_wrong_shape",
        "",
        "",
    ),
    "a gradient that a branch computes, for a layer that needs none, too": (
        """
class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()
    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        of_x = of_weight = None
        if ctx.needs_input_grad[0]:
            of_x = grad @ weight
        if ctx.needs_input_grad[1]:
            of_weight = x.t() @ grad
        return of_x, of_weight
x, first = torch.rand(4, 3), torch.ones(2, 3, requires_grad=True)
frozen = torch.ones(2, 2)
# %%
Affine.apply(Affine.apply(x, first), frozen).sum().backward()
""",
        "gradient_of_wrong_shape",
        "",
        "            of_weight = (x.t() @ grad).t()",
    ),
    "a gradient squeezed for an input of one element, which other calls give more": (
        """
class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, shift):
        ctx.save_for_backward(x, weight)
        return x @ weight.t() + shift
    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        of_shift = grad.sum(0).squeeze(-1)
        return grad @ weight, grad.t() @ x, of_shift
def layer(inputs, outputs):
    return torch.ones(outputs, inputs, requires_grad=True), torch.zeros(outputs, requires_grad=True)
hidden, last = layer(2, 3), layer(3, 1)
# %%
Affine.apply(Affine.apply(torch.ones(4, 2), *hidden), *last).sum().backward()
""",
        "gradient_of_wrong_shape",
        "",
        "        of_shift = grad.sum(0)",
    ),
    "the same with whatever dimensions have one element": (
        """
class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shift):
        return x + shift
    @staticmethod
    def backward(ctx, grad):
        return grad, torch.squeeze(grad.sum(0), dim=0)
wide, narrow = torch.zeros(3, requires_grad=True), torch.zeros(1, requires_grad=True)
# %%
Shift.apply(Shift.apply(torch.ones(4, 3), wide).mean(1, keepdim=True), narrow).sum().backward()
""",
        "gradient_of_wrong_shape",
        "",
        "        return grad, torch.squeeze(grad.sum(0), dim=0).reshape(-1)",
    ),
    "the same for an input of two dimensions, whose sizes are those of one call": (
        """
class Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x)
        return x @ weight.t()
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return None, (grad.t() @ x).squeeze()
weight = torch.ones(1, 3, requires_grad=True)
# %%
Times.apply(torch.ones(4, 3), weight).sum().backward()
""",
        "gradient_of_wrong_shape",
        "",
        "",
    ),
    "a gradient summed over the channels of an image, where the input lies along the last": (
        """
class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shift):
        return (x + shift).clone()
    @staticmethod
    def backward(ctx, grad):
        return grad, grad.sum(dim=[0, *range(2, grad.dim())])
shift = torch.zeros(3, requires_grad=True)
# %%
Shift.apply(torch.ones(4, 5, 3), shift).square().sum().backward()
""",
        "gradient_of_wrong_shape",
        "",
        "        return grad, grad.sum_to_size(grad.shape[-1:])",
    ),
    "the same where forward does something else with the input": (
        """
class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, shift):
        return (x + shift.unsqueeze(-1)).clone()
    @staticmethod
    def backward(ctx, grad):
        return grad, grad.sum(dim=[0, 1])
shift = torch.zeros(3, requires_grad=True)
# %%
Shift.apply(torch.ones(4, 3, 5), shift).square().sum().backward()
""",
        "gradient_of_wrong_shape",
        "",
        "        return grad, grad.sum((0, 2))",
    ),
    "a gradient summed over the batch alone, where the input lies along the heads": (
        """
class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, gate):
        ctx.save_for_backward(scores, gate)
        return scores * gate.view(-1, 1, 1)
    @staticmethod
    def backward(ctx, grad):
        scores, gate = ctx.saved_tensors
        return grad * gate.view(-1, 1, 1), (grad * scores).sum(dim=(0, 3))
gate = torch.ones(3, requires_grad=True)
# %%
Gate.apply(torch.rand(2, 3, 4, 3), gate).square().sum().backward()
""",
        "gradient_of_wrong_shape",
        "",
        "        return grad * gate.view(-1, 1, 1), (grad * scores).sum((0, 2, 3))",
    ),
    "a gradient without a sum, of an input along the channels": (
        """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        return x * scale[:, None]
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return None, grad * x
scale = torch.ones(4, requires_grad=True)
# %%
Scale.apply(torch.rand(4, 4, 5), scale).square().sum().backward()
""",
        "gradient_of_wrong_shape",
        "",
        "        return None, (grad * x).sum((0, 2))",
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
    "math.exp of what is learned, on its only way into the loss": (
        """
import math
log_alpha = torch.tensor(-0.5, requires_grad=True)
def temperature(entropy):
    alpha = math.exp(log_alpha)
    return alpha * entropy
# %%
w = torch.ones(2, requires_grad=True)
loss = temperature(w.sum()) + w.square().sum()
loss.backward()
""",
        "scalar_conversion",
        "",
        "    alpha = torch.exp(log_alpha)",
    ),
    "float of a number that a function hands to a log": (
        """
w = torch.ones(2, requires_grad=True)
def step():
    loss = w.square().sum()
    loss.backward()
    return float(loss)
# %%
log = [step()]
""",
        "scalar_conversion",
        "",
        "    return loss.item()",
    ),
    "tensors in a list of numbers": (
        """
a = torch.tensor(0.5, requires_grad=True)
c, s = torch.cos(a), torch.sin(a)
# %%
turn = torch.tensor([[c, -s, 0.0], [s, c, 0.0]])
""",
        "scalar_conversion",
        "list",
        "turn = torch.stack([torch.stack([c, -s, torch.tensor(0.0)]), "
        "torch.stack([s, c, torch.tensor(0.0)])])",
    ),
    "tensors in a list that was gathered before": (
        """
w = torch.ones(3, requires_grad=True)
share = torch.tensor([0.2, 0.8])
# %%
terms = []
for k in range(2):
    terms.append((w ** (k + 1)).sum())
loss = share @ torch.tensor(terms)
""",
        "scalar_conversion",
        "list",
        "loss = share @ torch.stack(terms)",
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
    "forward in one cell, rounds in another": (
        """
w = torch.ones(2, requires_grad=True)
# %%
guess = w.exp()
loss = (guess - 3).pow(2).sum()
# %%
for _ in range(3):
    w.grad = None
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
""",
        "second_backward",
        "computed_once",
        "    loss = (guess - 3).pow(2).sum()",
    ),
    "forward in one function with the rounds, a method that goes backward": (
        """
class Trainer:
    def __init__(self, net):
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
    def step(self, loss):
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
def fit(net, x):
    trainer = Trainer(net)
    out = net(x)
    loss = out.pow(2).mean()
    for _ in range(3):
        trainer.step(loss)
    return loss
# %%
fit(nn.Linear(2, 1), torch.rand(4, 2))
""",
        "second_backward",
        "computed_once",
        "        out = net(x)",
    ),
    "kernel computed in the constructor, read by two methods": (
        """
class Smoother(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(()))
        steps = torch.arange(width) - width // 2
        weights = torch.exp(-steps.pow(2) / self.log_scale.exp())
        self.kernel = weights / weights.sum()
    def penalty(self):
        return self.kernel.pow(2).sum()
    def forward(self, x):
        return (x * self.kernel).sum()
# %%
smoother = Smoother(3)
opt = torch.optim.SGD(smoother.parameters(), lr=0.1)
for _ in range(2):
    opt.zero_grad()
    (smoother(torch.ones(3)) + smoother.penalty()).backward()
    opt.step()
""",
        "second_backward",
        "computed_once",
        "        steps = torch.arange(self.width) - self.width // 2",
    ),
    "two attributes of a plain object's constructor": (
        """
class Camera:
    def __init__(self, angle):
        self.angle = angle.requires_grad_()
        self.cos, self.name = None, "front"
        self.sine = self.angle.sin()
        self.tangent = self.angle.tan()
    def project(self, x):
        return x * self.sine + self.tangent
camera = Camera(torch.tensor(0.3))
# %%
for _ in range(2):
    camera.project(torch.ones(2)).sum().backward()
""",
        "second_backward",
        "computed_once",
        "    def tangent(self):",
    ),
    "an optimizer of second order with a closure": (
        """
class Newton(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {})
    def curvature(self, p):
        return torch.autograd.grad((p.grad * torch.ones_like(p)).sum(), p)[0]
    def step(self, closure):
        with torch.enable_grad():
            loss = closure()
            found = {p: self.curvature(p) for p in self.param_groups[0]["params"]}
        with torch.no_grad():
            for p, h in found.items():
                p -= p.grad / h.abs().clamp(min=1.0)
        return loss
# %%
w = nn.Parameter(torch.rand(3))
opt = Newton([w])
def closure():
    opt.zero_grad()
    loss = w.pow(4).sum()
    loss.backward()
    return loss
# %%
opt.step(closure)
""",
        "graph_cut",
        "left",
        "    loss.backward(create_graph=True)",
    ),
    "a penalty of the gradients that two backwards left": (
        """
net = nn.Linear(2, 1)
def flatness(module):
    params = list(module.parameters())
    norm = sum(p.grad.square().sum() for p in params)
    for p, g in zip(params, torch.autograd.grad(norm, params, allow_unused=True)):
        p.grad = p.grad.detach() if g is None else p.grad.detach() + g
# %%
opt = torch.optim.SGD(net.parameters(), 0.1)
out = net(torch.rand(4, 2))
opt.zero_grad()
out.pow(4).mean().backward(retain_graph=True)
out.exp().mean().backward()
flatness(net)
opt.step()
""",
        "graph_cut",
        "left",
        "out.exp().mean().backward(create_graph=True)",
    ),
    "a gradient read on the way, and an argmax": (
        """
net = nn.Linear(3, 2)
def shifted(x):
    x = x.clone().requires_grad_()
    net(x).square().sum().backward()
    return x.detach() + x.grad.sign()
# %%
guess = net(shifted(torch.rand(4, 3))).argmax(1).float()
loss = guess.square().mean()
loss.backward()
""",
        "graph_cut",
        "integer",
        "",
    ),
    "a cache filled of a prompt once, which every round grows": (
        """
class Cache:
    def __init__(self):
        self.kept = torch.empty(0, 3)
    def add(self, k):
        self.kept = torch.cat([self.kept, k])
        return self.kept
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(3, 3)
    def forward(self, x, cache):
        k = cache.add(self.key(x))
        return torch.softmax(x @ k.T, -1) @ k
net = Net().requires_grad_(False)
prompt = nn.Parameter(torch.rand(2, 3))
def filled():
    cache = Cache()
    net(prompt, cache)
    return cache
# %%
opt = torch.optim.SGD([prompt], lr=0.1)
cache = filled()
for x in torch.rand(3, 1, 3):
    loss = net(x, cache).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "computed_once",
        "    cache = filled()",
    ),
    "a list that only gives names to what was computed once": (
        """
net = nn.Linear(3, 3).requires_grad_(False)
prompt = nn.Parameter(torch.rand(2, 3))
opt = torch.optim.SGD([prompt], lr=0.1)
prefix = {"k": net(prompt), "v": net(prompt).tanh()}
layers = [prefix["k"], prefix["v"]]
# %%
for x in torch.rand(3, 1, 3):
    loss = (torch.softmax(x @ layers[0].T, -1) @ layers[1]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "second_backward",
        "computed_once",
        '    layers = [prefix["k"], prefix["v"]]',
    ),
}
