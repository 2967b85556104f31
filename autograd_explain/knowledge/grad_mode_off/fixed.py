# %%
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 2)
inputs, labels = torch.randn(12, 3), torch.randint(0, 2, (12,))
# %%
def validate(net, inputs, labels):
    net.eval()
    with torch.no_grad():
        right = net(inputs).argmax(dim=1) == labels
        net.train()
        return right.float().mean().item()
# %%
for epoch in range(2):
    loss = nn.functional.cross_entropy(net(inputs), labels)
    loss.backward()
    print(validate(net, inputs, labels))
