# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
gate = nn.Linear(4, 3)
experts = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))

def route(x, boost=0.2):
    probs = F.softmax(gate(x), dim=-1)
    top = probs.argmax(dim=-1, keepdim=True)
    return probs.scatter(1, top, probs.gather(1, top) + boost)
# %%
x = torch.randn(6, 4)
mix = route(x)
outs = torch.stack([e(x) for e in experts], dim=1)
y = (mix.unsqueeze(-1) * outs).sum(1)
loss = y.pow(2).mean()
loss.backward()
