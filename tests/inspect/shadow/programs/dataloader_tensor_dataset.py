# %%
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
torch.manual_seed(0)
ds = TensorDataset(torch.randn(50, 4), torch.randint(0, 3, (50,)))
train_ds, val_ds = random_split(ds, [40, 10])
train_dl = DataLoader(train_ds, batch_size=8, shuffle=True, num_workers=0)
# %%
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 3))

    def forward(self, x):
        return self.net(x).softmax(-1)  # saved
# %%
model = Head()
opt = torch.optim.Adam(model.parameters())
for epoch in range(2):
    for i, (xb, yb) in enumerate(train_dl):
        p = model(xb)
        p += 1e-8  # wrote
        loss = -p.log().gather(1, yb[:, None]).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
