# %%
import torch
from torch.autograd import Variable

torch.manual_seed(0)
net = torch.nn.Linear(2, 1)
batch = torch.randn(4, 2)
# %%
inputs = batch
print(net(inputs).shape)
