# %%
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
best = {k: v.clone() for k, v in net.state_dict().items()}
x = torch.randn(5, 2)


def evaluate(model, weights):
    model.load_state_dict(weights)  # wrote
    with torch.no_grad():
        return model(x).mean().item()


# %%
out = net(x)  # saved
loss = out.pow(2).mean()
print(evaluate(net, best))
loss.backward()
