# %%
import torch
from torch import nn

torch.manual_seed(0)


class FFN(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up, self.out = nn.Linear(dim, inner), nn.Linear(inner, dim)
        self.neurons = None

    def forward(self, x):
        self.neurons = torch.relu(self.up(self.norm(x)))
        return x + self.out(self.neurons)

# %%
class TinyLM(nn.Module):
    def __init__(self, vocab=11, dim=6, depth=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(FFN(dim, 3 * dim) for _ in range(depth))

    def forward(self, ids):
        x = self.embed(ids).mean(1)
        for block in self.blocks:
            x = block(x)
        return x @ self.embed.weight.t()
# %%
class FactEditor:
    def __init__(self, model, layer):
        self.model, self.layer = model, layer

    @property
    def value_matrix(self):
        return self.model.blocks[self.layer].out.weight

    def attribute(self, prompts, answer):
        attributions = torch.zeros(self.value_matrix.shape[1])
        for ids in prompts:
            score = self.model(ids)[:, answer].sum()
            act = self.model.blocks[self.layer].neurons
            (grad,) = torch.autograd.grad(score, act)
            attributions += (act * grad).detach().sum(0)
        return attributions.topk(2).indices

    def edit(self, positions, old, new, strength=(1.0, 4.0)):
        table = self.model.embed.weight.detach()
        with torch.no_grad():
            for pos in positions.tolist():
                self.value_matrix[:, pos] -= strength[0] * table[old]
                self.value_matrix[:, pos] += strength[1] * table[new]
# %%
model = TinyLM()
prompts = [torch.randint(0, 11, (2, 4)) for _ in range(3)]
editor = FactEditor(model, layer=1)
where = editor.attribute(prompts, answer=5)
editor.edit(where, old=5, new=8)
print(model(prompts[0])[:, [5, 8]])
