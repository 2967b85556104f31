# %%
import torch
torch.manual_seed(0)
A = torch.rand(3, 3, requires_grad=True)
# %%
def fixed_point(A, tol=1e-4, limit=50):
    x = torch.ones(3)
    err, it = 1.0, 0
    history = []
    while err > tol and it < limit:
        new = torch.tanh(A @ x)  # saved
        err = (new - x).abs().max().item()
        history.append(new)
        x = new
        it += 1
    for h in history:
        h.sub_(h.mean())  # wrote
    return history
# %%
loss = torch.stack(fixed_point(A)).sum()
loss.backward()
