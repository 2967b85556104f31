# %%
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(1)
obs_dim, n_act = 5, 3


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(obs_dim, 16)
        self.pi = nn.Linear(16, n_act)
        self.v = nn.Linear(16, 1)

    def forward(self, obs):
        h = torch.tanh(self.body(obs))
        return self.pi(h), self.v(h).squeeze(-1)  # saved


# %%
def gae(rewards, values, gamma=0.99, lam=0.95):
    adv = torch.zeros_like(rewards)
    last = 0.0
    for t in reversed(range(len(rewards))):
        nxt = values[t + 1] if t + 1 < len(values) else 0.0
        delta = rewards[t] + gamma * nxt - values[t]
        last = delta + gamma * lam * last
        adv[t] = last
    return adv


def update(model, opt, obs, actions, rewards, epochs=4):
    _, values = model(obs)
    adv = gae(rewards, values)
    for _ in range(epochs):
        logits, v = model(obs)
        logp = F.log_softmax(logits, dim=-1).gather(1, actions[:, None]).squeeze(1)
        loss = -(logp * adv).mean() + F.mse_loss(v, rewards)
        opt.zero_grad()
        loss.backward(retain_graph=True)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()  # wrote


# %%
model = ActorCritic()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
update(model, opt, torch.randn(6, obs_dim), torch.randint(0, n_act, (6,)), torch.rand(6))
