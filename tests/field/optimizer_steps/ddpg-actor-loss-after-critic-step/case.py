# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class Critic(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_obs + n_act, 12), nn.Tanh(), nn.Linear(12, 1))

    def forward(self, obs, act):
        return self.net(torch.cat([obs, act], dim=-1))


class DDPG:
    def __init__(self, n_obs=3, n_act=1):
        self.actor = nn.Sequential(nn.Linear(n_obs, n_act), nn.Tanh())
        self.critic = Critic(n_obs, n_act)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-2)

    def update(self, obs, act, target):
        actor_loss = -self.critic(obs, self.actor(obs)).mean()
        critic_loss = nn.functional.mse_loss(self.critic(obs, act), target)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        return {"critic": critic_loss.item(), "actor": actor_loss.item()}
# %%
agent = DDPG()
info = agent.update(torch.randn(16, 3), torch.rand(16, 1), torch.randn(16, 1))
print(info)
