# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class LoRALinear(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.up = nn.Parameter(torch.randn(base.out_features, rank) * 0.1)

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


class TinyLM(nn.Module):
    def __init__(self, vocab=20, dim=8, max_len=16):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, dim)
        self.register_buffer("positions", torch.randn(max_len, dim) * 0.02)
        self.mix = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens):
        text_embeds = self.embed_tokens(tokens)
        text_embeds += self.positions[: tokens.size(1)]
        hidden, _ = self.mix(text_embeds)
        return self.head(hidden)
# %%
# 学習済みの重みは固定して LoRA だけ学習する
def prepare_for_lora(model):
    for p in model.parameters():
        p.requires_grad_(False)
    model.head = LoRALinear(model.head)

    def make_inputs_require_grad(module, args, output):
        output.requires_grad_(True)

    # gradient checkpointing を使うときに必要
    model.embed_tokens.register_forward_hook(make_inputs_require_grad)
    return model
# %%
lm = prepare_for_lora(TinyLM())
opt = torch.optim.AdamW([p for p in lm.parameters() if p.requires_grad], lr=1e-3)
tokens = torch.randint(0, 20, (4, 10))
logits = lm(tokens[:, :-1])
loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
loss.backward()
opt.step()
