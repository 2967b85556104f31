# %%
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


def freq_mask(spec, width):
    bands = spec.squeeze(1).clone()
    f0 = int(torch.randint(0, bands.size(1) - width, ()))
    bands[:, f0:f0 + width] = 0.0
    return bands.unsqueeze(1)


class KeywordNet(nn.Module):
    def __init__(self, n_words=4):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.fc = nn.Linear(4, n_words)
        self.act = nn.ReLU(inplace=True)

    def forward(self, spec):
        h = self.act(self.conv1(spec))
        h = self.act(self.conv2(h))
        return self.fc(h.mean(dim=(2, 3)))
# %%
# 音声の代わりに、ランダムな正弦波の和からスペクトログラムを作る
time = torch.arange(0, 1, 1 / 512)
freqs = 20 + 180 * torch.rand(6, 3, 1)
wave = torch.sin(2 * torch.pi * freqs * time).sum(dim=1)
power = torch.stft(wave, n_fft=32, hop_length=32, window=torch.hann_window(32), return_complex=True).abs() ** 2
spec = torch.log1p(power).unsqueeze(1)
label = torch.tensor([0, 1, 2, 3, 0, 1])
# %%
net = KeywordNet()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
# 元の音声とマスクした音声の出力をそろえる(一貫性正則化)
logits = net(spec)
masked = net(freq_mask(spec, width=4))
loss = F.cross_entropy(logits, label)
loss += 0.5 * F.mse_loss(masked.softmax(1), logits.softmax(1))
# %%
opt.zero_grad()
loss.backward()
opt.step()
print(loss.item())
