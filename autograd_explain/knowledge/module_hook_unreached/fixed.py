# %%
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
seen = []


def watch(module, grad_in, grad_out):
    seen.append(grad_in[0])


net[0].register_full_backward_hook(watch)
# %%
batch = torch.randn(4, 3)
net(batch.requires_grad_()).square().mean().backward()
