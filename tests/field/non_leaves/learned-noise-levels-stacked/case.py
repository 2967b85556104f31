# %%
import torch

torch.manual_seed(0)

def noise_levels(n):
    levels = [torch.tensor(0.1 * (i + 1), requires_grad=True) for i in range(n)]
    return torch.stack(levels)
# %%
sigmas = noise_levels(4)
opt = torch.optim.Adam([{"params": [sigmas], "lr": 1e-2}])
for _ in range(2):
    x = torch.randn(4) * sigmas
    loss = (x ** 2).mean() - sigmas.log().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
