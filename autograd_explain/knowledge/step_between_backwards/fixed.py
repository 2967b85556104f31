# %%
import torch
from torch import nn

torch.manual_seed(0)
actor, critic = nn.Linear(3, 2), nn.Linear(2, 1)
actor_opt = torch.optim.SGD(actor.parameters(), lr=0.1)
critic_opt = torch.optim.SGD(critic.parameters(), lr=0.1)
state, reward = torch.randn(8, 3), torch.randn(8, 1)
# %%
action = actor(state)
critic_loss = (critic(action.detach()) - reward).square().mean()
critic_opt.zero_grad()
critic_loss.backward()
critic_opt.step()
actor_loss = -critic(action).mean()
actor_opt.zero_grad()
actor_loss.backward()
actor_opt.step()
