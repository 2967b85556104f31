# %%
import torch
torch.manual_seed(3)
theta = torch.randn(2, 6, requires_grad=True)
# %%
def features(p):
    y = torch.exp(p)  # saved
    flat = y.view(-1)
    flat[0] = 0.0  # wrote
    return y
# %%
loss = features(theta).sum()
loss.backward()
