# %%
import torch
from torch import nn

torch.manual_seed(0)


class FairnessLagrangian(nn.Module):
    """Task loss + multiplier * constraint; the multiplier goes up while the constraint is violated."""

    def __init__(self, n_groups, step=0.5, slack=0.02):
        super().__init__()
        self.multiplier = nn.Parameter(torch.zeros(n_groups))
        self.step, self.slack = step, slack

    def violation(self, prob, group):
        gaps = []
        for g in range(len(self.multiplier)):
            gap = prob[group == g].mean()
            gap = gap - prob.mean()
            gaps.append(gap.abs() - self.slack)
        return torch.stack(gaps)

    def forward(self, task_loss, prob, group):
        return task_loss + (self.multiplier * self.violation(prob, group)).sum()

    def ascend(self, violation):
        with torch.no_grad():
            self.multiplier += self.step * violation
            self.multiplier.clamp_(min=0.0)

# %%
x = torch.randn(60, 3)
group = (torch.arange(60) % 3)
x[group == 1] += 0.8
y = (x.sum(dim=1) > 0).float()

model = nn.Linear(3, 1)
lagrangian = FairnessLagrangian(n_groups=3)
opt = torch.optim.SGD(model.parameters(), lr=0.3)

# %%
for epoch in range(6):
    logit = model(x).squeeze(1)
    prob = logit.sigmoid()
    task = nn.functional.binary_cross_entropy_with_logits(logit, y)
    total = lagrangian(task, prob, group)
    opt.zero_grad()
    total.backward()
    opt.step()
    lagrangian.ascend(lagrangian.violation(prob, group))
print(lagrangian.multiplier)
