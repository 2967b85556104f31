# %%
import torch
from torch import nn

torch.manual_seed(0)


class SlotAttention(nn.Module):
    def __init__(self, num_slots=3, dim=6, iters=2):
        super().__init__()
        self.num_slots, self.iters, self.scale = num_slots, iters, dim ** -0.5
        self.slots_mu = nn.Parameter(nn.init.xavier_uniform_(torch.empty(1, 1, dim)))
        self.slots_log_sigma = nn.Parameter(nn.init.xavier_uniform_(torch.empty(1, 1, dim)))
        self.to_q, self.to_k, self.to_v = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.gru = nn.GRUCell(dim, dim)

    def forward(self, x):
        b, _, d = x.shape
        noise = torch.randn(b, self.num_slots, d)
        slots = self.slots_mu + self.slots_log_sigma.exp() * noise
        k, v = self.to_k(x), self.to_v(x)
        for _ in range(self.iters):
            attn = (self.to_q(slots) @ k.transpose(1, 2) * self.scale).softmax(dim=1) + 1e-8
            updates = (attn / attn.sum(-1, keepdim=True)) @ v
            slots = self.gru(updates.reshape(-1, d), slots.reshape(-1, d)).view(b, -1, d)
        return slots
# %%
def chamfer(slots, objects):
    dist = torch.cdist(slots, objects)
    return dist.min(1).values.mean() + dist.min(2).values.mean()


def scenes(n):
    for _ in range(n):
        objects = torch.randn(4, 3, 6)
        yield objects, objects.repeat_interleave(4, dim=1) + 0.1 * torch.randn(4, 12, 6)
# %%
model = SlotAttention()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
print(sum(p.numel() for p in model.parameters()), "learnable numbers")
# %%
log = []
for objects, pixels in scenes(8):
    loss = chamfer(model(pixels), objects)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log.append(loss.item())
print(f"{log[0]:.3f} -> {log[-1]:.3f}", model.slots_mu.flatten()[:3].tolist())
