# %%
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
# %%
class MagnitudePruner:
    def __init__(self, model, ratio):
        self.layers = [m for m in model if isinstance(m, nn.Linear)]
        self.ratio = ratio

    def threshold(self, w):
        k = max(1, int(self.ratio * w.numel()))
        return w.detach().abs().flatten().kthvalue(k).values

    def apply(self):
        for layer in self.layers:
            mask = layer.weight.abs() <= self.threshold(layer.weight)
            layer.weight[mask] = 0.0
# %%
pruner = MagnitudePruner(net, ratio=0.3)
pruner.apply()
kept = sum(int((l.weight != 0).sum()) for l in pruner.layers)
print(kept)
