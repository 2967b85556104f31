# %%
import torch

x = torch.tensor([3.0, -2.0], requires_grad=True)
optimizer = torch.optim.LBFGS([x], lr=0.5)
# %%
optimizer.zero_grad()
loss = (x - 1).square().sum()
loss.backward()
optimizer.step()
print(x)
