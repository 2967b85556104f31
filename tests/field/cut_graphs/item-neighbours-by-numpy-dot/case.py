# %%
import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)


class MF(nn.Module):
    def __init__(self, n_users, n_items, dim):
        super().__init__()
        self.users = nn.Embedding(n_users, dim)
        self.items = nn.Embedding(n_items, dim)

    def forward(self, u, i):
        return (self.users(u) * self.items(i)).sum(-1)
# %%
class Recommender:
    def __init__(self, titles, n_users=6, dim=3):
        self.titles = titles
        self.model = MF(n_users, len(titles), dim)
        self.opt = torch.optim.Adagrad(self.model.parameters(), lr=0.1)

    def fit(self, u, i, rating, epochs=3):
        for _ in range(epochs):
            self.opt.zero_grad()
            loss = (self.model(u, i) - rating).pow(2).mean()
            loss.backward()
            self.opt.step()
        return loss.item()

    def similar(self, title, k=2):
        table = self.model.items.weight / self.model.items.weight.norm(dim=1, keepdim=True)
        row = self.titles.index(title)
        cos = np.dot(table, table[row])
        order = np.argsort(-cos)
        return [self.titles[j] for j in order if j != row][:k], cos
# %%
rec = Recommender(["alien", "heat", "up", "coco", "tenet"])
u, i = torch.randint(0, 6, (40,)), torch.randint(0, 5, (40,))
final = rec.fit(u, i, torch.randint(1, 6, (40,)).float())
print("rmse", final ** 0.5)
# %%
names, cos = rec.similar("up")
print(names)
