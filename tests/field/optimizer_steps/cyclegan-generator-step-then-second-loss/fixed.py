# %%
import torch
from torch import nn

torch.manual_seed(0)
nets = {"G": nn.Linear(3, 3), "F": nn.Linear(3, 3)}
opts = {k: torch.optim.SGD(n.parameters(), lr=0.1, momentum=0.9) for k, n in nets.items()}
a, b = torch.randn(6, 3), torch.randn(6, 3)
# %%
fake_b = nets["G"](a)
rec_a = nets["F"](fake_b)
fake_a = nets["F"](b)
rec_b = nets["G"](fake_a)
cycle_a = (rec_a - a).abs().mean()
cycle_b = (rec_b - b).abs().mean()
first = cycle_a.item()
# %%
for opt in opts.values():
    opt.zero_grad()
(cycle_a + cycle_b).backward()
for opt in opts.values():
    opt.step()
