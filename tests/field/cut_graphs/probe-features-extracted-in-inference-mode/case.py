# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Conv1d(1, 6, 5, stride=2), nn.ReLU(), nn.Conv1d(6, 8, 5, stride=2), nn.ReLU())
backbone.eval()
# %%
class FeatureStore:
    def __init__(self, net):
        self.net = net
        self.feats = {}

    @torch.inference_mode()
    def add(self, split, waves, bs=8):
        chunks = [self.net(w.unsqueeze(1)).mean(dim=-1) for w in waves.split(bs)]
        self.feats[split] = torch.cat(chunks)
        return self

    def batches(self, split, labels, bs):
        f = self.feats[split]
        for i in range(0, len(f), bs):
            yield f[i:i + bs], labels[i:i + bs]
# %%
train_y, valid_y = torch.randint(0, 3, (16,)), torch.randint(0, 3, (8,))
store = FeatureStore(backbone)
store.add("train", torch.randn(16, 64)).add("valid", torch.randn(8, 64))
# %%
def evaluate(probe):
    with torch.no_grad():
        return probe(store.feats["valid"]).argmax(1).eq(valid_y).float().mean().item()


probe = nn.Linear(8, 3)
opt = torch.optim.SGD(probe.parameters(), lr=0.1)
acc = [evaluate(probe)]
for epoch in range(2):
    for f, y in store.batches("train", train_y, 4):
        loss = nn.functional.cross_entropy(probe(f), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    acc.append(evaluate(probe))
print(acc)
