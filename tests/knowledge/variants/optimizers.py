"""Optimizers, schedulers, scalers and the gradients they use."""

from __future__ import annotations

PROGRAMS = {
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
    "weight computed in the forward pass, in the table of parameters": (
        """
class Scaled(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.log_scale = nn.Parameter(torch.zeros(1))
        self.kept = nn.Parameter(layer.weight.detach().clone())
        self.refresh()
    def refresh(self):
        self.layer._parameters["weight"] = self.kept * self.log_scale.exp()
    def forward(self, x):
        self.refresh()
        return self.layer(x)
net = Scaled(nn.Linear(3, 1))
# %%
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.ones(2, 3)).sum().backward()
    optimizer.step()
""",
        "non_leaf_in_optimizer",
        "table",
        '        self.layer._parameters.pop("weight", None)',
    ),
    "recurrent weight computed by a hook, in the table of parameters": (
        """
def masked(module, inputs):
    for name in module.masks:
        value = getattr(module, name + "_all") * module.masks[name]
        module._parameters[name] = value
net = nn.LSTM(2, 2)
net.masks = {"weight_hh_l0": torch.ones(8, 2)}
net.weight_hh_l0_all = nn.Parameter(net.weight_hh_l0.detach().clone())
net.register_forward_pre_hook(masked)
masked(net, ())
# %%
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    net(torch.ones(3, 1, 2))[0].sum().backward()
    optimizer.step()
""",
        "non_leaf_in_optimizer",
        "table",
        "        setattr(module, name, value)",
    ),
    "weight computed once, in the table of parameters": (
        """
class Scaled(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.kept = nn.Parameter(layer.weight.detach().clone())
        self.layer._parameters["weight"] = self.kept * 2
    def forward(self, x):
        return self.layer(x)
net = Scaled(nn.Linear(3, 1))
# %%
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
""",
        "non_leaf_in_optimizer",
        "table",
        "",
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
}
