# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
enc = nn.Linear(3, 4)
online = nn.Sequential(enc, nn.Tanh(), nn.Linear(4, 2))
opt = torch.optim.SGD(online.parameters(), lr=0.1)
# %%
def embed(x):
    z = torch.tanh(enc(x))
    return torch.tensor(z.tolist())

x = torch.randn(6, 3)
y = torch.randint(0, 2, (6,))
for _ in range(3):
    logits = online[2](embed(x))
    loss = nn.functional.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
