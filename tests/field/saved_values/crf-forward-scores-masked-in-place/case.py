# %%
import torch
from torch import nn

torch.manual_seed(0)


class LinearChainCRF(nn.Module):
    def __init__(self, n_tags):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(n_tags))
        self.trans = nn.Parameter(0.1 * torch.randn(n_tags, n_tags))

    def gold_score(self, emit, tags, mask):
        rows = torch.arange(len(emit))
        score = self.start[tags[:, 0]] + emit[rows, 0, tags[:, 0]]
        for t in range(1, emit.shape[1]):
            step = self.trans[tags[:, t - 1], tags[:, t]] + emit[rows, t, tags[:, t]]
            score += step * mask[:, t]
        return score

    def log_partition(self, emit, mask):
        """前向算法,padding 处保留上一步的 alpha"""
        alpha = self.start + emit[:, 0]
        for t in range(1, emit.shape[1]):
            inner = alpha.unsqueeze(2) + self.trans + emit[:, t].unsqueeze(1)
            nxt = torch.logsumexp(inner, dim=1)
            pad = ~mask[:, t]
            nxt[pad] = alpha[pad]
            alpha = nxt
        return torch.logsumexp(alpha, dim=1)
# %%
class Tagger(nn.Module):
    def __init__(self, vocab=15, n_tags=4):
        super().__init__()
        self.embed = nn.Embedding(vocab, 6)
        self.lstm = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
        self.emit = nn.Linear(10, n_tags)
        self.crf = LinearChainCRF(n_tags)

    def forward(self, words, tags, mask):
        emit = self.emit(self.lstm(self.embed(words))[0])
        return (self.crf.log_partition(emit, mask) - self.crf.gold_score(emit, tags, mask)).mean()
# %%
words, tags = torch.randint(1, 15, (3, 7)), torch.randint(0, 4, (3, 7))
lengths = torch.tensor([7, 5, 4])
mask = torch.arange(7) < lengths.unsqueeze(1)
words[~mask] = 0
tagger = Tagger()
nll = tagger(words, tags, mask)
nll.backward()
print(nll.item())
