# %%
import torch

torch.manual_seed(0)
logits = torch.randn(4, 3, requires_grad=True)

def relaxed_sample(logits, tau, banned):
    g = -torch.empty_like(logits).exponential_().log()
    soft = ((logits + g) / tau).softmax(dim=-1)
    rows = torch.arange(len(banned))
    soft = soft.index_put((rows, banned), torch.zeros(()))
    return soft / soft.sum(-1, keepdim=True)
# %%
y = relaxed_sample(logits, tau=0.7, banned=torch.tensor([0, 2, 1, 0]))
loss = (y * torch.arange(3.0)).sum()
loss.backward()
