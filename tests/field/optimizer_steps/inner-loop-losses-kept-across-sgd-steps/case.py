# %%
import copy

import torch
from torch import nn

torch.manual_seed(0)


def make_task():
    amp, phase = torch.rand(2).tolist()
    x = torch.linspace(-2, 2, 12).unsqueeze(1)
    return x, (0.5 + amp) * torch.sin(x + 3 * phase)


meta_net = nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1))
step_logits = torch.zeros(3, requires_grad=True)     # 内循环每一步的权重
meta_opt = torch.optim.SGD([step_logits], lr=0.5)
# %%
def adapt(net, x, y, lr=0.1):
    fast = copy.deepcopy(net)
    inner = torch.optim.SGD(fast.parameters(), lr=lr)
    curve = []
    for _ in range(len(step_logits)):
        loss = nn.functional.mse_loss(fast(x), y)
        inner.zero_grad()
        loss.backward(retain_graph=True)
        inner.step()
        curve.append(loss)
    return fast, torch.stack(curve)
# %%
for it in range(2):
    meta_opt.zero_grad()
    w = step_logits.softmax(0)
    total = 0.0
    for task in (make_task(), make_task()):
        fast, curve = adapt(meta_net, *task)
        total = total + (w * curve).sum()
    total.backward()
    meta_opt.step()
print(step_logits)
