# %%
import torch

torch.manual_seed(0)
phases = torch.randn(4, dtype=torch.complex64, requires_grad=True)
optimizer = torch.optim.Adam([phases], lr=0.1, fused=True)
# %%
loss = (phases - 1).abs().square().sum()
loss.backward()
optimizer.step()
print(loss)
