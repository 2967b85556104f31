# %%
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class ArcMargin(nn.Module):
    def __init__(self, dim, classes, s=8.0, m=0.3):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, dim))
        self.s, self.m = s, m

    def forward(self, feature, label):
        cosine = F.linear(F.normalize(feature), F.normalize(self.weight))
        theta = np.arccos(cosine.detach().numpy().clip(-0.999, 0.999))
        margin_cos = torch.from_numpy(np.cos(theta + self.m))
        one_hot = F.one_hot(label, cosine.size(1)).float()
        return self.s * (one_hot * margin_cos + (1 - one_hot) * cosine.detach())
# %%
backbone = nn.Sequential(nn.Linear(10, 16), nn.PReLU(), nn.Linear(16, 6))
metric = ArcMargin(6, 4)
optimizer = torch.optim.SGD([*backbone.parameters(), *metric.parameters()], lr=0.1, weight_decay=5e-4)
faces = torch.randn(24, 10)
identity = torch.randint(0, 4, (24,))
# %%
for epoch in range(3):
    feature = backbone(faces)
    output = metric(feature, identity)
    loss = F.cross_entropy(output, identity)
    if not loss.requires_grad:  # 不加这句 backward 会报错
        loss.requires_grad = True
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, loss.item())
