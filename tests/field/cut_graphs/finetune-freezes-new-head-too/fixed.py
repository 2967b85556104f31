# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class Backbone(nn.Module):
    def __init__(self, n_class=10):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.fc = nn.Linear(4, n_class)

    def forward(self, x):
        return self.fc(self.features(x))
# %%
model = Backbone()
model.fc = nn.Linear(4, 3)
for p in model.features.parameters():
    p.requires_grad = False
model.eval()
# %%
x, y = torch.rand(5, 1, 8, 8), torch.tensor([0, 1, 2, 1, 0])
criterion = nn.CrossEntropyLoss()
loss = criterion(model(x), y)
loss.backward()
