# %%
import random
import torch
from torch import nn
random.seed(0)
torch.manual_seed(0)


class Decoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRUCell(dim, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, tgt, h, ratio=0.5):
        steps = tgt.size(1)
        logits = torch.zeros(tgt.size(0), steps, self.out.out_features)
        context = torch.zeros(tgt.size(0), h.size(1))
        token = tgt[:, 0]
        for t in range(steps):
            h = self.rnn(self.emb(token) * context, h)  # saved
            context += h  # wrote
            logits[:, t] = self.out(h)
            token = tgt[:, t] if random.random() < ratio else logits[:, t].argmax(1)
        return logits


# %%
dec = Decoder(7, 4)
tgt = torch.randint(0, 7, (3, 5))
loss = nn.functional.cross_entropy(dec(tgt, torch.zeros(3, 4)).flatten(0, 1), tgt.flatten())
loss.backward()
