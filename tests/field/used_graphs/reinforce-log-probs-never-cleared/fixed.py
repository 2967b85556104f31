# %%
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)


class Reinforce:
    def __init__(self):
        self.net = nn.Linear(4, 3)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.log_probs, self.rewards = [], []

    def act(self, s):
        dist = Categorical(logits=self.net(s))
        a = dist.sample()
        self.log_probs.append(dist.log_prob(a))
        return a.item()

    def finish_episode(self):
        ret = sum(self.rewards)
        loss = -torch.stack(self.log_probs).sum() * ret
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.rewards.clear()
        self.log_probs.clear()
        return ret
# %%
agent = Reinforce()
returns = []
for episode in range(3):
    state = torch.zeros(4)
    for t in range(3):
        a = agent.act(state)
        agent.rewards.append(1.0 if a == t else -0.1)
        state = nn.functional.one_hot(torch.tensor(a), 4).float()
    returns.append(agent.finish_episode())
