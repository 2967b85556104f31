# %%
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class LoRALinear(nn.Module):
    def __init__(self, base, rank=2, alpha=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scaling * (x @ self.lora_a.t()) @ self.lora_b.t()


class MixBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim, elementwise_affine=False)
        self.proj = LoRALinear(nn.Linear(dim, dim))

    def forward(self, x):
        return x + nn.functional.silu(self.proj(self.norm(x)).cumsum(1))
# %%
class CausalMixer(nn.Module):
    def __init__(self, vocab=13, dim=8, depth=2, gradient_checkpointing=False):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(MixBlock(dim) for _ in range(depth))
        self.embed.requires_grad_(False)
        self.gradient_checkpointing = gradient_checkpointing

    def forward(self, ids):
        h = self.embed(ids)
        for block in self.blocks:
            if self.gradient_checkpointing and self.training:
                h = checkpoint(block, h, use_reentrant=False)
            else:
                h = block(h)
        return h @ self.embed.weight.t()
# %%
model = CausalMixer(gradient_checkpointing=True)
trainable = [p for p in model.parameters() if p.requires_grad]
print(sum(p.numel() for p in trainable), "trainable parameters")
optimizer = torch.optim.AdamW(trainable, lr=1e-2)
ids = torch.randint(0, 13, (3, 7))
# %%
logits = model(ids)
loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
loss.backward()
optimizer.step()
print(loss.item())
