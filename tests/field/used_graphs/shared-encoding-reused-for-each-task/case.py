# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 4))
heads = nn.ModuleDict({"age": nn.Linear(4, 1), "income": nn.Linear(4, 1)})
x = torch.randn(20, 5)
targets = {"age": torch.rand(20, 1), "income": torch.randn(20, 1)}
# %%
optimizer = torch.optim.Adam([*encoder.parameters(), *heads.parameters()], lr=1e-2)
optimizer.zero_grad()
z = encoder(x)
report = {}
for task, head in heads.items():
    loss = F.mse_loss(head(z), targets[task])
    loss.backward()
    report[task] = loss.item()
print(report)
