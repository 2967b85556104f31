# %%
import torch

torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
# %%
for step in range(2):
    optimizer.zero_grad()
    loss = net(torch.ones(2, 3)).square().mean()
    loss.backward()
    optimizer.step()
