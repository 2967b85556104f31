# %%
import copy
import functools

import torch
from torch import nn

torch.manual_seed(0)


def wn_layer(kind, *args, **kwargs):
    conv = kind(*args, **kwargs)
    return nn.utils.parametrizations.weight_norm(conv)


WNConv = functools.partial(wn_layer, nn.Conv1d)
WNConvT = functools.partial(wn_layer, nn.ConvTranspose1d)
# %%
class Codec(nn.Module):
    def __init__(self, ch=4):
        super().__init__()
        self.encode = nn.Sequential(WNConv(1, ch, 4, stride=2, padding=1), nn.ELU(), WNConv(ch, ch, 3, padding=1))
        self.decode = nn.Sequential(nn.ELU(), WNConvT(ch, 1, 4, stride=2, padding=1), nn.Tanh())

    def forward(self, x):
        return self.decode(self.encode(x))


class EMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = copy.deepcopy(model)

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)
# %%
codec = Codec()
ema = EMA(codec)
optimizer = torch.optim.Adam(codec.parameters(), lr=1e-3)
wave = torch.sin(torch.linspace(0, 20, 64)).view(1, 1, 64)
# %%
for step in range(3):
    loss = nn.functional.l1_loss(codec(wave), wave)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(codec)
print(loss.item())
