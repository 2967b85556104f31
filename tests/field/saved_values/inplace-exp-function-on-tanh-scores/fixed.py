# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class InplaceExp(torch.autograd.Function):
    """メモリ節約版の exp"""

    @staticmethod
    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y


inplace_exp = InplaceExp.apply
# %%
class AttentionPool(nn.Module):
    """袋の中のパッチを重み付き平均する (MIL)"""

    def __init__(self, dim, hidden):
        super().__init__()
        self.embed = nn.Linear(dim, hidden)
        self.score = nn.Linear(hidden, 1)

    def forward(self, bag):
        h = torch.relu(self.embed(bag))
        score = torch.tanh(self.score(h)).squeeze(-1)
        weight = inplace_exp(score.clone())
        weight = weight / weight.sum(dim=-1, keepdim=True)
        return (weight.unsqueeze(-1) * h).sum(dim=-2), weight


class BagClassifier(nn.Module):
    def __init__(self, dim=6, hidden=8):
        super().__init__()
        self.pool = AttentionPool(dim, hidden)
        self.classify = nn.Linear(hidden, 1)

    def forward(self, bag):
        z, weight = self.pool(bag)
        return self.classify(z).squeeze(-1), weight
# %%
net = BagClassifier()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
bags, label = torch.randn(5, 12, 6), torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0])
logit, weight = net(bags)
loss = nn.functional.binary_cross_entropy_with_logits(logit, label)
opt.zero_grad()
loss.backward()
opt.step()
