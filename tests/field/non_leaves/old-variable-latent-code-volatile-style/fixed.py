# %%
import torch
from torch.autograd import Variable

torch.manual_seed(0)
decoder = torch.nn.Linear(2, 5)
targets = torch.rand(2, 5)

def new_code(size):
    return Variable(torch.randn(1, size) / 10, requires_grad=True)
# %%
codes = []
for k in range(len(targets)):
    codes.append(new_code(2))
# %%
for p in decoder.parameters():
    p.requires_grad = False
opt = torch.optim.SGD(codes, lr=0.5)
for step in range(5):
    out = torch.cat([decoder(c) for c in codes])
    err = (out - Variable(targets)).pow(2).sum()
    opt.zero_grad()
    err.backward()
    opt.step()
print(err.item())
