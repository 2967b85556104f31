# %%
import torch
from torch import nn
torch.manual_seed(0)
enc = nn.Linear(3, 3)
dec = nn.Linear(3, 3)
opts = {"enc": torch.optim.SGD(enc.parameters(), lr=0.1), "dec": torch.optim.Adam(dec.parameters())}


def forward(x):
    z = torch.tanh(enc(x))
    return z, dec(z)  # saved


def step(name):
    opts[name].step()  # wrote
    opts[name].zero_grad()


def train_one(x):
    z, y = forward(x)
    rec = (y - x).pow(2).mean()
    reg = y.abs().mean()
    for name, loss in (("dec", rec), ("enc", reg)):
        loss.backward(retain_graph=True)
        step(name)


# %%
for _ in range(2):
    train_one(torch.randn(4, 3))
