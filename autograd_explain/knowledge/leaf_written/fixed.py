# %%
import torch

torch.manual_seed(0)
inputs, targets = torch.randn(8, 3), torch.randn(8)
weight = torch.zeros(3, requires_grad=True)
# %%
for epoch in range(2):
    error = (inputs @ weight - targets).square().mean()
    error.backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
    weight.grad = None
