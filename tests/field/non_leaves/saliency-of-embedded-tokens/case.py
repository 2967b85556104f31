# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class SentimentNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(12, 4)
        self.rnn = nn.GRU(4, 5, batch_first=True)
        self.fc = nn.Linear(5, 2)
        self.cache = {}

    def forward(self, ids):
        emb = self.embedding(ids)
        self.cache["emb"] = emb
        _, h = self.rnn(emb)
        return self.fc(h[-1])
# %%
model = SentimentNet()
ids = torch.tensor([[1, 4, 7, 2]])
logits = model(ids)
logits[0].max().backward()
# %%
emb = model.cache["emb"]
g = emb.grad
saliency = g.norm(dim=-1) if g is not None else None
