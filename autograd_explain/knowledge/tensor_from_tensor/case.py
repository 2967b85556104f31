# %%
import torch

torch.manual_seed(0)
prior = {"mean": torch.randn(3, requires_grad=True), "scale": 0.5}
# %%
start = torch.tensor(prior["mean"], requires_grad=True)
misfit = ((start - 1) / prior["scale"]).square().sum()
misfit.backward()
print(start.grad)
