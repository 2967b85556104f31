# %%
import torch
import torch.nn as nn


def init_weights(m):
    if isinstance(m, (nn.Linear, nn.Embedding)):
        nn.init.normal_(m.weight, mean=0.0, std=0.02)
    if isinstance(m, nn.Linear) and m.bias is not None:
        nn.init.zeros_(m.bias)


class LM(nn.Module):
    def __init__(self, vocab=20, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.hid = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, vocab)
        self.apply(init_weights)

    def forward(self, ids):
        return self.out(torch.relu(self.hid(self.embed(ids))))
# %%
torch.manual_seed(0)
model = LM()
ids = torch.randint(0, 20, (3, 4))
print(model(ids).shape)
