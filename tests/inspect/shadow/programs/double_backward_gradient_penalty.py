# %%
import torch
from torch import nn
torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(2, 5), nn.Softplus(), nn.Linear(5, 1))
opt = torch.optim.SGD(critic.parameters(), lr=0.1)


def penalty(net, x):
    x = x.clone().requires_grad_()
    out = net(x)
    grad, = torch.autograd.grad(out.sum(), x, create_graph=True)  # saved
    return ((grad.norm(dim=1) - 1) ** 2).mean()


# %%
x = torch.randn(6, 2)
gp = penalty(critic, x)
loss = critic(x).mean()
loss.backward()
opt.step()  # wrote
gp.backward()
