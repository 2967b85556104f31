# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class BagOfWords(nn.Module):
    def __init__(self, vocab, dim, n_class, pad=0):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.fc = nn.Linear(dim, n_class)
        self.pad = pad
        self.reset_padding()

    def reset_padding(self):
        self.emb.weight[self.pad].zero_()

    def forward(self, ids):
        lengths = (ids != self.pad).sum(1, keepdim=True)
        total = self.emb(ids).sum(1)
        total /= lengths
        return self.fc(total)

# %%
model = BagOfWords(10, 4, 2)
ids = torch.tensor([[1, 2, 0], [3, 4, 5]])
print(model(ids))
