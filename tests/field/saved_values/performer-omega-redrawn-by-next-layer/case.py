# %%
import torch
from torch import nn

torch.manual_seed(0)


class PositiveRandomFeatures(nn.Module):
    def __init__(self, dim, n_features):
        super().__init__()
        self.register_buffer("omega", torch.zeros(dim, n_features))

    def new_feature_map(self):
        self.omega.normal_()

    def forward(self, x):
        proj = x @ self.omega
        norm = x.pow(2).sum(-1, keepdim=True) / 2
        return torch.exp(proj - norm) / self.omega.shape[1] ** 0.5
# %%
class LinearAttention(nn.Module):
    def __init__(self, dim, feature_map):
        super().__init__()
        self.to_qkv = nn.Linear(dim, 3 * dim)
        self.feature_map = feature_map
        self.scale = dim ** -0.25

    def forward(self, x):
        self.feature_map.new_feature_map()
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        q, k = self.feature_map(q * self.scale), self.feature_map(k * self.scale)
        kv = torch.einsum("btf,btd->bfd", k, v)
        z = 1 / (torch.einsum("btf,bf->bt", q, k.sum(1)) + 1e-6)
        return x + torch.einsum("btf,bfd,bt->btd", q, kv, z)
# %%
dim = 6
features = PositiveRandomFeatures(dim, 20)
model = nn.Sequential(*[LinearAttention(dim, features) for _ in range(2)])
readout = nn.Linear(dim, 3)
optimizer = torch.optim.Adam([*model.parameters(), *readout.parameters()], lr=1e-3)
tokens, labels = torch.randn(4, 9, dim), torch.randint(0, 3, (4,))
# %%
for epoch in range(3):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(readout(model(tokens).mean(1)), labels)
    loss.backward()
    optimizer.step()
print(loss.item())
