# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class PointNet(nn.Module):
    def __init__(self, n_class=4):
        super().__init__()
        self.local = nn.Sequential(nn.Conv1d(3, 8, 1), nn.ReLU(), nn.Conv1d(8, 8, 1))
        self.head = nn.Linear(8, n_class)

    def forward(self, cloud):
        h = self.local(cloud.transpose(1, 2))
        return self.head(h.max(dim=2).values)
# %%
def grad_report(model):
    report = {}
    for name, w in model.named_parameters():
        report[name] = w.grad.norm().item()
    return report
# %%
model = PointNet()
clouds, labels = torch.randn(5, 20, 3), torch.randint(0, 4, (5,))
clouds -= clouds.mean(dim=1, keepdim=True)
loss = nn.functional.cross_entropy(model(clouds), labels)
loss.backward()

report = grad_report(model)
for name, norm in report.items():
    print(f"{name:16} {norm:.4f}")
