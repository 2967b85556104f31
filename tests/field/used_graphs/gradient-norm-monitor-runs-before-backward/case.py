# %%
import math

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


class Monitor:
    def __init__(self, every=2):
        self.every, self.rows = every, []

    def step(self, it, model, loss):
        if it % self.every == 0:
            self.rows.append(self.summary(model, loss))

    def summary(self, model, loss):
        names, params = zip(*[(n, p) for n, p in model.named_parameters() if p.requires_grad])
        norms = self.norms(loss, params)
        return dict(zip(names, norms), loss=loss.item())

    @staticmethod
    def norms(value, params):
        grads = torch.autograd.grad(value, params)
        return [g.pow(2).sum().sqrt().item() for g in grads]
# %%
class CharLM(nn.Module):
    def __init__(self, vocab=9, dim=6):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, 10, batch_first=True)
        self.out = nn.Linear(10, vocab)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.out(h)
# %%
lm, monitor = CharLM(), Monitor()
opt = torch.optim.SGD(lm.parameters(), lr=0.5)
text = torch.randint(0, 9, (4, 13))
# %%
for it in range(1, 5):
    logits = lm(text[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    monitor.step(it, lm, loss)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
    opt.step()
print(math.exp(loss.item()))
