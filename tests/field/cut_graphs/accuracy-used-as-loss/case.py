# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Linear(4, 3)
x, y = torch.randn(12, 4), torch.randint(0, 3, (12,))
# %%
def objective(logits, y):
    pred = logits.argmax(dim=1)
    acc = (pred == y).float().mean()
    return 1 - acc
# %%
logits = net(x)
logits += 0.01 * torch.randn_like(logits)
loss = objective(logits, y)
loss.backward()
