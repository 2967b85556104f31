# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class GatedBlock(nn.Module):
    def __init__(self, ch, dilation):
        super().__init__()
        self.dilated = nn.Conv1d(ch, 2 * ch, 2, dilation=dilation)
        self.skip = nn.Conv1d(ch, ch, 1)
        self.res = nn.Conv1d(ch, ch, 1)
        self.left = dilation

    def forward(self, x):
        h = self.dilated(F.pad(x, (self.left, 0)))
        filt, gate = h.chunk(2, dim=1)
        z = torch.tanh(filt) * torch.sigmoid(gate)
        skip = self.skip(z)
        z = F.hardtanh(z, -0.5, 0.5, inplace=True)
        out = self.res(z)
        out += x
        return out, skip


class TinyWaveNet(nn.Module):
    def __init__(self, ch=4, levels=3, classes=8):
        super().__init__()
        self.embed = nn.Embedding(classes, ch)
        self.blocks = nn.ModuleList([GatedBlock(ch, 2 ** i) for i in range(levels)])
        self.post = nn.Conv1d(ch, classes, 1)

    def forward(self, codes):
        h = self.embed(codes).transpose(1, 2)
        total = 0
        for block in self.blocks:
            h, z = block(h)
            total = total + z
        total /= len(self.blocks)
        return self.post(F.relu(total, inplace=True))
# %%
net = TinyWaveNet()
codes = torch.randint(0, 8, (2, 25))
logits = net(codes[:, :-1])
loss = F.cross_entropy(logits, codes[:, 1:])
loss.backward()
