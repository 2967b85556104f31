# %%
import torch
from torch import nn

torch.manual_seed(0)


class MultiTask(nn.Module):
    def __init__(self, n_in=5, hidden=8, tasks=("depth", "normal", "label")):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.heads = nn.ModuleDict({t: nn.Linear(hidden, 1) for t in tasks})

    def forward(self, x, targets):
        z = self.trunk(x)
        return torch.stack([(head(z) - targets[t]).pow(2).mean() for t, head in self.heads.items()])
# %%
def gradnorm_penalty(model, task_weights, losses, first_losses, alpha=1.5):
    shared = model.trunk[-2].weight
    norms = []
    for i in range(len(losses)):
        g, = torch.autograd.grad(task_weights[i] * losses[i], shared, retain_graph=True, create_graph=True)
        norms.append(g.norm())
    norms = torch.stack(norms)
    ratio = losses.detach() / first_losses
    wanted = norms.detach().mean() * (ratio / ratio.mean()) ** alpha
    return (norms - wanted).abs().sum()
# %%
model = MultiTask()
task_weights = torch.ones(3, requires_grad=True)
opt_model = torch.optim.Adam(model.parameters(), lr=1e-2)
opt_weights = torch.optim.Adam([task_weights], lr=1e-2)
x = torch.randn(16, 5)
targets = {"depth": torch.randn(16, 1), "normal": 3 * torch.randn(16, 1), "label": torch.rand(16, 1)}
first_losses = None
# %%
for epoch in range(3):
    losses = model(x, targets)
    if first_losses is None:
        first_losses = losses.detach()
    opt_model.zero_grad()
    (task_weights.detach() * losses).sum().backward(retain_graph=True)
    gradnorm_loss = gradnorm_penalty(model, task_weights, losses, first_losses)
    opt_weights.zero_grad()
    task_weights.grad = torch.autograd.grad(gradnorm_loss, task_weights)[0]
    opt_model.step()
    opt_weights.step()
print(task_weights.tolist())
