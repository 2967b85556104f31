# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Hawkes(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_mu = nn.Parameter(torch.tensor(-0.5))
        self.alpha = nn.Parameter(torch.tensor(0.3))
        self.beta = nn.Parameter(torch.tensor(1.0))

    def log_rate(self, grid, events):
        lag = grid[:, None] - events[None]
        decay = torch.exp(-F.softplus(self.beta) * lag.clamp(min=0))
        decay = decay * (lag > 0)
        return self.log_mu + self.alpha * decay.sum(1)
# %%
def bin_counts(events, edges):
    rate = torch.histc(events, bins=len(edges) - 1, min=edges[0].item(), max=edges[-1].item())
    rate /= edges[1] - edges[0]      # events per second
    rate *= edges[1] - edges[0]
    return rate


def compensator(rate, width):
    # 各ビンの期待件数
    rate *= width
    return rate.sum()


def neg_log_lik(model, events, edges):
    width = edges[1] - edges[0]
    log_rate = model.log_rate(edges[:-1] + width / 2, events)
    rate = log_rate.exp()
    return compensator(rate, width) - (bin_counts(events, edges) * log_rate).sum()


def train_step(model, opt, batch):
    opt.zero_grad()
    loss = sum(neg_log_lik(model, ev, ed) for ev, ed in batch) / len(batch)
    loss.backward()
    opt.step()
    return loss.item()
# %%
edges = torch.linspace(0, 10, 21)
batch = [(torch.rand(n).mul_(10).sort().values, edges) for n in (7, 12, 9)]
model = Hawkes()
opt = torch.optim.SGD(model.parameters(), lr=0.01)
curve = [train_step(model, opt, batch) for _ in range(4)]
print(curve)
