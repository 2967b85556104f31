# %%
import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Linear(3, 2)
log_alpha = torch.zeros((), requires_grad=True)
target_entropy = -0.5

def temperature_loss(logp):
    alpha = log_alpha.exp()
    return -(alpha * (logp.detach() + target_entropy)).mean()
# %%
logp = policy(torch.randn(6, 3)).log_softmax(-1)
alpha_loss = temperature_loss(logp)
alpha_loss.backward()
print(log_alpha.grad)
