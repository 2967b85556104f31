# %%
import torch
from torch import nn

torch.manual_seed(0)
P = 4      # quarters


class HoltWinters(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw = nn.ParameterDict({k: nn.Parameter(torch.zeros(())) for k in ("alpha", "gamma")})
        self.level0 = nn.Parameter(torch.tensor(10.0))
        self.season0 = nn.Parameter(torch.ones(P))

    def forward(self, y):
        alpha, gamma = (torch.sigmoid(self.raw[k]) for k in ("alpha", "gamma"))
        level = self.level0
        season = self.season0 / self.season0.mean()
        fitted = torch.zeros_like(y)
        for t in range(len(y)):
            k = t % P
            s = season[k]
            fitted[t] = level * s
            new = alpha * y[t] / s + (1 - alpha) * level
            season[k] = gamma * y[t] / new + (1 - gamma) * s
            level = new
        return fitted
# %%
t = torch.arange(16.0)
sales = (10 + 0.3 * t) * torch.tensor([0.8, 1.1, 1.3, 0.8]).repeat(4)
sales += 0.1 * torch.randn(16)
# %%
model = HoltWinters()
opt = torch.optim.Adam(model.parameters(), lr=0.05)
for epoch in range(3):
    fitted = model(sales)
    loss = ((fitted - sales) / sales).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
