# %%
import torch

row = torch.tensor([1.0, 2.0, 3.0, 4.0])
scale = torch.tensor([[1.0], [10.0], [100.0]], requires_grad=True)
# %%
grid = row.expand(3, 4).clone()
grid.mul_(scale)
loss = grid.sum()
loss.backward()
print(scale.grad)
