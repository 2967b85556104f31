# %%
import torch
from torch import nn
torch.manual_seed(0)
lin = nn.Linear(3, 3)
x = torch.randn(2, 3)
# %%
def forward(x):
    y = lin(x).sigmoid()
    return y
# %%
forward(x).sum().backward()
# %%
def forward(x):
    y = lin(x)
    y = y.sigmoid()  # saved
    y *= 2  # wrote
    return y
# %%
forward(x).sum().backward()
