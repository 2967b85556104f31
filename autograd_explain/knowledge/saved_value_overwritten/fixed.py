# %%
import torch

torch.manual_seed(0)
x, w = torch.randn(4, 3), torch.randn(3, 2, requires_grad=True)
# %%
def gated(x):
    gate = torch.sigmoid(x @ w)
    # keep every gate a little open
    gate = gate + 0.1
    return gate
# %%
loss = gated(x).sum()
loss.backward()
