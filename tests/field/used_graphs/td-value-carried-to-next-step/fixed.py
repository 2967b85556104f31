# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 1))
opt = torch.optim.SGD(critic.parameters(), lr=0.1)
states = torch.randn(6, 2)
rewards = [0.1, 0.0, -0.2, 0.3, 1.0]
gamma = 0.9
# %%
td_errors = []
for t, r in enumerate(rewards):
    v = critic(states[t])
    with torch.no_grad():
        v_next = critic(states[t + 1])
    delta = r + gamma * v_next - v
    loss = delta.pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    td_errors.append(delta.item())
