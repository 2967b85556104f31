# %%
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)


def clip_by_norm(gradients, max_norm):
    total = torch.stack([g.detach().norm() for g in gradients]).norm()
    if total > max_norm:
        gradients = [g * (max_norm / total) for g in gradients]
    return gradients
# %%
class MetaSGD:
    def __init__(self, net, lr=0.1, clip=0.5):
        self.net, self.clip = net, clip
        self.rates = {n: nn.Parameter(torch.full_like(p, lr)) for n, p in net.named_parameters()}
        self.sharpness = 0.0

    def parameters(self):
        yield from self.net.parameters()
        yield from self.rates.values()

    def adapt(self, x, y):
        params = dict(self.net.named_parameters())
        inner = nn.functional.mse_loss(functional_call(self.net, params, (x,)), y)
        grads = torch.autograd.grad(inner, list(params.values()), create_graph=True)
        self.sharpness = sum(g.pow(2).sum() for g in grads)
        grads = clip_by_norm(grads, self.clip)
        return {n: p - self.rates[n] * g for (n, p), g in zip(params.items(), grads)}
# %%
def sample_task(n=10):
    w = torch.randn(4, 1)
    x = torch.randn(2 * n, 4)
    return (x[:n], x[:n] @ w), (x[n:], x[n:] @ w)


meta = MetaSGD(nn.Linear(4, 1))
meta_opt = torch.optim.Adam(meta.parameters(), lr=1e-2)
# %%
for it in range(4):
    outer = 0.0
    for _ in range(2):
        support, (xq, yq) = sample_task()
        fast = meta.adapt(*support)
        outer = outer + nn.functional.mse_loss(functional_call(meta.net, fast, (xq,)), yq) + 1e-3 * meta.sharpness
    meta_opt.zero_grad()
    outer.backward()
    meta_opt.step()
print(outer.item())
