# %%
import torch

torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
# %%
loss = net(torch.ones(2, 3)).square().mean()
grads = torch.autograd.grad(loss, net.named_parameters())
print([g.shape for g in grads])
