# %%
import torch
from torch import nn

torch.manual_seed(0)


class FrameReader:
    """Windowed frames of a waveform. Long recordings: keep the memory flat."""

    def __init__(self, n, hop):
        self.n, self.hop = n, hop
        self.window = torch.hann_window(n)
        self.scratch = torch.empty(n)

    def __call__(self, wav):
        wav = wav - wav.mean()
        wav /= wav.abs().max()
        for start in range(0, len(wav) - self.n + 1, self.hop):
            torch.mul(wav[start:start + self.n], self.window, out=self.scratch)
            yield self.scratch
# %%
class LearnedFilterbank(nn.Module):
    def __init__(self, n=32, bands=6):
        super().__init__()
        self.reader = FrameReader(n, n // 2)
        self.basis = nn.Parameter(torch.randn(n, bands) / n ** 0.5)

    def forward(self, wav):
        rows = []
        for frame in self.reader(wav):
            spec = frame @ self.basis
            rows.append(spec.pow(2).add(1e-4).log())
        return torch.stack(rows)
# %%
bank = LearnedFilterbank()
clf = nn.Linear(6, 2)
opt = torch.optim.Adam([*bank.parameters(), *clf.parameters()], lr=1e-2)
wav, label = torch.randn(160).cumsum(0), torch.tensor([1])
# %%
opt.zero_grad()
feats = bank(wav)
loss = nn.functional.cross_entropy(clf(feats.mean(0, keepdim=True)), label)
loss.backward()
opt.step()
