# %%
import torch
from torch import nn
from torch.autograd import Variable

torch.manual_seed(0)
net = nn.Linear(4, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
# %%
x, y = torch.randn(10, 4), torch.randint(0, 2, (10,))
for epoch in range(3):
    optimizer.zero_grad()
    out = net(Variable(x))
    loss = criterion(out, Variable(y))
    loss = Variable(loss.data, requires_grad=True)
    loss.backward()
    optimizer.step()
    print(epoch, loss.item())
