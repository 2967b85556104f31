# %%
import torch
from torch import nn
from torch.func import functional_call
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1))
meta = torch.optim.Adam(model.parameters(), lr=1e-3)


def adapt(params, x, y, lr=0.1):
    pred = functional_call(model, params, (x,))
    loss = (pred - y).pow(2).mean()
    grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)  # saved
    return {k: p - lr * g for (k, p), g in zip(params.items(), grads)}


# %%
x, y = torch.randn(5, 1), torch.randn(5, 1)
params = dict(model.named_parameters())
fast = adapt(params, x, y)
outer = (functional_call(model, fast, (x,)) - y).pow(2).mean()
aux = model(x).pow(2).mean()
aux.backward()
meta.step()  # wrote
outer.backward()
