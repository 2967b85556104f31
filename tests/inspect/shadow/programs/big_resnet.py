# %%
import torch
from torch import nn
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Basic(nn.Module):
    def __init__(self, a, b, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(b)
        self.conv2 = nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(b)
        self.relu = nn.ReLU(inplace=True)
        self.short = nn.Sequential() if stride == 1 and a == b else nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = torch.sigmoid(self.bn2(self.conv2(out)))  # saved
        out += self.short(x)  # wrote
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True))
        layers, c = [], 64
        for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            for i in range(2):
                layers.append(Basic(c, width, stride if i == 0 else 1))
                c = width
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = self.layers(self.stem(x))
        return self.fc(x.mean((2, 3)))


# %%
net = ResNet().to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
x, y = torch.randn(8, 3, 32, 32).to(device), torch.randint(0, 10, (8,)).to(device)
for epoch in range(3):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
