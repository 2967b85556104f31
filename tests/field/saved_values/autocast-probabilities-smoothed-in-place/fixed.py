# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 4))
x, y = torch.randn(9, 6), torch.randint(0, 4, (9,))

def smooth_nll(logits, y, eps=0.1):
    probs = logits.float().softmax(dim=-1)
    probs = probs * (1 - eps)
    probs = probs + eps / probs.size(-1)
    picked = probs.gather(1, y[:, None])
    return -picked.log().mean()
# %%
with torch.autocast("cpu", dtype=torch.bfloat16):
    logits = net(x)
loss = smooth_nll(logits, y)
loss.backward()
