# %%
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)


class ActorCritic(nn.Module):
    def __init__(self, n_obs=4, n_act=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_obs, 10), nn.Tanh())
        self.pi = nn.Linear(10, n_act)
        self.v = nn.Linear(10, 1)

    def evaluate(self, obs, act):
        h = self.body(obs)
        dist = Categorical(logits=self.pi(h))
        return dist.log_prob(act), self.v(h).squeeze(-1), dist.entropy()
# %%
class PPO:
    def __init__(self, agent, clip=0.2, n_epoch=4):
        self.agent, self.clip, self.n_epoch = agent, clip, n_epoch
        self.optim = torch.optim.SGD(agent.parameters(), lr=0.05)

    def update(self, obs, act, old_logp, returns):
        logp, value, entropy = self.agent.evaluate(obs, act)
        adv = (returns - value).detach()
        adv -= adv.mean()
        adv /= adv.std() + 1e-8
        for _ in range(self.n_epoch):
            ratio = (logp - old_logp).exp()
            surr = torch.min(ratio * adv, ratio.clamp(1 - self.clip, 1 + self.clip) * adv)
            loss = -surr.mean() + 0.5 * (returns - value).pow(2).mean() - 0.01 * entropy.mean()
            self.optim.zero_grad()
            loss.backward(retain_graph=True)  # 不加会报错
            self.optim.step()
        return loss.item()
# %%
agent = ActorCritic()
obs, returns = torch.randn(32, 4), torch.randn(32)
with torch.no_grad():
    dist = Categorical(logits=agent.pi(agent.body(obs)))
    act = dist.sample()
    old_logp = dist.log_prob(act)
ppo = PPO(agent)
last = ppo.update(obs, act, old_logp, returns)
print(last)
