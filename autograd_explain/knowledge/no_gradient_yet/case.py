# %%
import torch

torch.manual_seed(0)
x, y = torch.randn(10, 2), torch.randn(10)
w = torch.zeros(2, requires_grad=True)
# %%
for step in range(3):
    w.grad.zero_()
    loss = (x @ w - y).square().mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
