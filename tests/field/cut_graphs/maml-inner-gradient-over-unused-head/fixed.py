# %%
import torch
import torch.nn as nn
from torch.func import functional_call

torch.manual_seed(0)


class MultiHead(nn.Module):
    def __init__(self, heads=("reach", "push")):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 10), nn.Tanh())
        self.heads = nn.ModuleDict({h: nn.Linear(10, 1) for h in heads})

    def forward(self, x, head):
        return self.heads[head](self.body(x))
# %%
def mse(model, params, batch, head):
    pred = functional_call(model, params, (batch["x"], head))
    return (pred - batch["y"]).pow(2).mean()


def adapt(model, batch, head, lr=0.1):
    fast = dict(model.named_parameters())
    for _ in range(2):
        loss = mse(model, fast, batch, head)
        grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True, allow_unused=True)
        fast = {n: p if g is None else p - lr * g for (n, p), g in zip(fast.items(), grads)}
    return fast


def make_batch(n=6):
    x = torch.randn(n, 4)
    return {"x": x, "y": x @ torch.randn(4, 1)}
# %%
model = MultiHead()
meta_opt = torch.optim.SGD(model.parameters(), lr=0.05)
outer_curve = []
for it in range(3):
    outer = 0.0
    for head in model.heads:
        support, query = make_batch(), make_batch()
        outer = outer + mse(model, adapt(model, support, head), query, head)
    meta_opt.zero_grad()
    outer.backward()
    meta_opt.step()
    outer_curve.append(outer.item())
print(outer_curve)
