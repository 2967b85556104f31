# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class RankLoss(nn.Module):
    """The finer scale should be more certain of the true class than the coarser one."""

    def __init__(self, margin=0.05):
        super().__init__()
        self.margin = margin

    def forward(self, coarser, finer, target):
        index = target.view(-1, 1)
        p1 = F.softmax(coarser, dim=1).gather(1, index)
        p2 = F.softmax(finer, dim=1).gather(1, index)
        return torch.clamp(p1 - p2 + self.margin, min=0)


coarse, fine = nn.Linear(6, 5), nn.Linear(6, 5)
opt = torch.optim.SGD([*coarse.parameters(), *fine.parameters()], lr=0.0)
criterion_rank = RankLoss(margin=2.0)
# %%
def do_batch(images, labels):
    scores = [net(images) for net in (coarse, fine)]
    loss = criterion_rank(scores[0], scores[1], labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.detach()


# 先用一张图试一下
print(do_batch(torch.randn(1, 6), torch.tensor([2])))
# %%
images, labels = torch.randn(32, 6), torch.randint(0, 5, (32,))
for epoch in range(2):
    rank = do_batch(images, labels)
print(rank.shape)
