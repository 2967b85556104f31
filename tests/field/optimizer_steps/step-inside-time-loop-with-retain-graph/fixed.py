# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
cell = nn.RNNCell(2, 5)
head = nn.Linear(5, 1)
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-2)
# %%
seq, target = torch.randn(6, 3, 2), torch.randn(6, 3, 1)
h = torch.zeros(3, 5)
losses = []
for x_t, y_t in zip(seq, target):
    h = cell(x_t, h)
    loss = nn.functional.mse_loss(head(h), y_t)
    opt.zero_grad()
    loss.backward()
    opt.step()
    h = h.detach()
    losses.append(loss.item())
