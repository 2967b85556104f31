# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class OnlineCentres(nn.Module):
    def __init__(self, k, dim, rate=0.3):
        super().__init__()
        self.register_buffer("centres", F.normalize(torch.randn(k, dim), dim=1))
        self.rate = rate

    def similarity(self, z):
        return z @ self.centres.t()

    def follow(self, z, labels):
        z = z.detach()
        for k in labels.unique().tolist():
            mean = z[labels == k].mean(dim=0)
            mean -= self.centres[k]
            self.centres.data[k] += self.rate * mean

# %%
encoder = nn.Sequential(nn.Linear(6, 10), nn.ReLU(inplace=True), nn.Linear(10, 4))
clusters = OnlineCentres(k=3, dim=4)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.2)
data = torch.randn(60, 6)
data[::3] += 2.0
data[1::3] -= 2.0


def train_step(x):
    z = F.normalize(encoder(x), dim=1)
    logits = clusters.similarity(z) / 0.3
    labels = logits.detach().argmax(dim=1)
    loss = F.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    clusters.follow(z, labels)
    return loss.item()

# %%
losses = []
for epoch in range(3):
    for x in data.split(20):
        losses.append(train_step(x))
print(losses[-1])
