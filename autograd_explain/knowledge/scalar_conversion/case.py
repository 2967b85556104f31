# %%
import torch

torch.manual_seed(0)
w = torch.randn(3, requires_grad=True)
# %%
history = []
for step in range(2):
    w.grad = None
    loss = (w - 1).square().sum()
    loss.backward()
    history.append(float(loss))
print(history)
