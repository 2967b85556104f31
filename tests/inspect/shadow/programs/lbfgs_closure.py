# %%
import torch
torch.manual_seed(0)
w = torch.randn(3, requires_grad=True)
A = torch.randn(4, 3)
opt = torch.optim.LBFGS([w], max_iter=3)
pred = (A @ w).exp()
aux = (w ** 3).sum()  # saved
# %%
def closure():
    opt.zero_grad()
    loss = (A @ w).pow(2).sum()
    loss.backward()
    return loss


opt.step(closure)  # wrote
(aux + 1).backward()
