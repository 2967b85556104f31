# %%
import torch

torch.manual_seed(0)
prior = {"mean": torch.randn(3, requires_grad=True), "scale": 0.5}
# %%
start = prior["mean"].detach().clone().requires_grad_()
misfit = ((start - 1) / prior["scale"]).square().sum()
misfit.backward()
print(start.grad)
