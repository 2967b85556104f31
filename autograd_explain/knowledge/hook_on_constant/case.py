# %%
import torch

torch.manual_seed(0)
encoder = torch.nn.Linear(4, 3)
x = torch.randn(2, 4)
norms = []
# %%
features = encoder(x).detach()
features.register_hook(lambda grad: norms.append(grad.norm()))
loss = features.square().sum()
loss.backward()
