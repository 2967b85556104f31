# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class TwoTower(nn.Module):
    def __init__(self, n_items=20, dim=6):
        super().__init__()
        self.items = nn.Embedding(n_items, dim, max_norm=1.0)
        nn.init.uniform_(self.items.weight, -0.2, 0.2)
        self.item_tower = nn.Sequential(nn.Linear(dim, 8), nn.ReLU(inplace=True), nn.Linear(8, dim))
        self.user_tower = nn.Linear(dim, dim)
        self.popularity = nn.Parameter(torch.zeros(n_items))

    def catalogue(self):
        return self.item_tower(self.items.weight)

    def encode_user(self, history):
        clicked = self.items(history)
        return self.user_tower(clicked.mean(dim=1))

    def forward(self, history):
        user = self.encode_user(history)
        scores = user @ self.catalogue().t()
        scores += self.popularity
        return scores

# %%
history = torch.randint(0, 20, (16, 5))
bought = torch.randint(0, 20, (16,))
model = TwoTower()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)

# %%
for start in range(0, 16, 8):
    scores = model(history[start:start + 8])
    loss = F.cross_entropy(scores, bought[start:start + 8])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print(loss.item())
