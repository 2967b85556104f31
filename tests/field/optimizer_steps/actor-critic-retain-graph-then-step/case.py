# %%
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(0)


class ActorCritic(nn.Module):
    def __init__(self, n_obs=4, n_act=2):
        super().__init__()
        self.body = nn.Linear(n_obs, 16)
        self.mid = nn.Linear(16, 16)
        self.pi = nn.Linear(16, n_act)
        self.v = nn.Linear(16, 1)

    def forward(self, obs):
        h = torch.tanh(self.mid(torch.tanh(self.body(obs))))
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)
# %%
net = ActorCritic()
opt_actor = torch.optim.Adam(net.parameters(), lr=1e-2)
opt_critic = torch.optim.Adam(net.parameters(), lr=1e-2)
obs, returns = torch.randn(10, 4), torch.randn(10)
actions = torch.randint(0, 2, (10,))
# %%
dist, value = net(obs)
adv = returns - value
critic_loss = adv.pow(2).mean()
actor_loss = -(dist.log_prob(actions) * adv.detach()).mean()
opt_critic.zero_grad()
critic_loss.backward(retain_graph=True)
opt_critic.step()
opt_actor.zero_grad()
actor_loss.backward()
opt_actor.step()
