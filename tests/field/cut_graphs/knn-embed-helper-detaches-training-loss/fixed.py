# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Linear(16, 4))
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.2, momentum=0.9)

# %%
def embed(x):
    z = encoder(x)
    z = F.normalize(z, dim=1)
    return z


def knn_accuracy(bank, bank_y, query, query_y, k=3):
    with torch.no_grad():
        sim = embed(query) @ embed(bank).t()
    near = bank_y[sim.topk(k, dim=1).indices]
    return (near.mode(dim=1).values == query_y).float().mean().item()


def nt_xent(z1, z2, tau=0.5):
    z = torch.cat([z1, z2])
    sim = z @ z.t()
    sim /= tau
    sim.fill_diagonal_(float("-inf"))
    n = len(z1)
    return F.cross_entropy(sim, torch.arange(2 * n).roll(n))

# %%
proto = torch.randn(3, 8)
y = torch.arange(30) % 3
x = proto[y] + 0.3 * torch.randn(30, 8)
print("训练前 kNN:", knn_accuracy(x[:20], y[:20], x[20:], y[20:]))

# %%
curve = []
for step in range(5):
    view1 = x[:20] + 0.1 * torch.randn(20, 8)
    view2 = x[:20] + 0.1 * torch.randn(20, 8)
    loss = nt_xent(embed(view1), embed(view2))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    curve.append(loss.item())
print("训练后 kNN:", knn_accuracy(x[:20], y[:20], x[20:], y[20:]), curve[-1])
