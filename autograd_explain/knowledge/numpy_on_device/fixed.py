# %%
import torch

# shapes first, without spending memory
grid = torch.ones(3, 2, device="cpu")
print(grid.shape)
# %%
rows = grid.numpy()
print(rows.sum(axis=0))
