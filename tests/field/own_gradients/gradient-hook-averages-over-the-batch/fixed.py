# %%
import torch
from torch import nn

torch.manual_seed(0)
feat_net = nn.Sequential(nn.Linear(5, 8), nn.ReLU())
label_head, domain_head = nn.Linear(8, 3), nn.Linear(8, 2)
# %%
class Reversal:
    """gradient reversal for the domain branch, with smoothing over the mini-batch"""

    def __init__(self, lam):
        self.lam = lam
        self.seen = []

    def __call__(self, feats):
        tapped = feats.clone()
        tapped.register_hook(self._flip)
        return tapped

    def _flip(self, grad):
        self.seen.append(grad.norm().item())
        smooth = grad.mean(dim=0, keepdim=True).expand_as(grad)
        return -self.lam * smooth
# %%
reverse = Reversal(lam=0.3)
x = torch.randn(10, 5)
y, dom = torch.randint(0, 3, (10,)), torch.randint(0, 2, (10,))
h = feat_net(x)
loss_y = nn.functional.cross_entropy(label_head(h), y)
loss_d = nn.functional.cross_entropy(domain_head(reverse(h)), dom)
(loss_y + loss_d).backward()
print(reverse.seen)
