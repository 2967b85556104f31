# %%
import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)


class CTRModel(nn.Module):
    def __init__(self, n_ads=10, dim=3, n_ctx=4):
        super().__init__()
        self.ads = nn.Embedding(n_ads, dim)
        self.mlp = nn.Sequential(nn.Linear(dim + n_ctx, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, ad, ctx):
        z = self.mlp(torch.cat([self.ads(ad), ctx], dim=1))
        return torch.sigmoid(z).squeeze(1)
# %%
def top_share(scores, share=0.2):
    """预测分数最高的 20% 占总分的比例"""
    arr = scores.detach().numpy().copy()
    arr.sort()
    k = int(len(arr) * share)
    return float(arr[-k:].sum() / arr.sum())


def base_rate(clicks):
    arr = clicks.numpy().copy()
    arr.sort()
    return float(arr.mean())
# %%
ad, ctx = torch.randint(0, 10, (40,)), torch.randn(40, 4)
click = (ctx[:, 0] + 0.3 * torch.randn(40) > 0.5).float()
model = CTRModel()
opt = torch.optim.SGD(model.parameters(), lr=0.5)
report = []
for epoch in range(3):
    opt.zero_grad()
    p = model(ad, ctx)
    brier = (p - click).pow(2).mean()
    report.append((brier.item(), top_share(p), base_rate(click)))
    brier.backward()
    opt.step()
print(report)
