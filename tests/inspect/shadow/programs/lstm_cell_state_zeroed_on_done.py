# %%
import torch
from torch import nn
torch.manual_seed(0)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, obs, state):
        h, c = self.cell(obs, state)
        return torch.sigmoid(self.head(h)), (h, c)  # saved


# %%
policy = Policy()
obs = torch.randn(6, 2, 3)
dones = torch.tensor([[0, 0], [0, 1], [0, 0], [1, 0], [0, 0], [0, 0]], dtype=torch.bool)
h, c = torch.zeros(2, 4), torch.zeros(2, 4)
outs = []
for t in range(6):
    out, (h, c) = policy(obs[t], (h, c))
    outs.append(out)
    if dones[t].any():
        h[dones[t]] = 0  # wrote
loss = torch.stack(outs).mean()
loss.backward()
