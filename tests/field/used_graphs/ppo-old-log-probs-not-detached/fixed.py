# %%
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
log_std = torch.zeros(1)
opt = torch.optim.SGD(policy.parameters(), lr=0.05)

def log_prob(obs, act):
    return Normal(policy(obs), log_std.exp()).log_prob(act).sum(-1)
# %%
def collect(n=16):
    obs = torch.randn(n, 3)
    act = Normal(policy(obs).detach(), log_std.exp()).sample()
    adv = -(act.squeeze(-1) - obs[:, 0]).pow(2)
    adv = (adv - adv.mean()) / adv.std()
    return {"obs": obs, "act": act, "adv": adv, "logp": log_prob(obs, act).detach()}
# %%
batch = collect()
stats = []
for epoch in range(3):
    ratio = (log_prob(batch["obs"], batch["act"]) - batch["logp"]).exp()
    clipped = ratio.clamp(0.8, 1.2)
    loss = -torch.min(ratio * batch["adv"], clipped * batch["adv"]).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    stats.append(loss.item())
