# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class SoftPrompt(nn.Module):
    def __init__(self, n_tokens, dim, dtype=torch.bfloat16):
        super().__init__()
        self.prompt = nn.Parameter(torch.randn(n_tokens, dim).to(dtype))

    def forward(self, embeds):
        p = self.prompt.expand(embeds.size(0), -1, -1).to(embeds.dtype)
        return torch.cat([p, embeds], dim=1)
# %%
soft = SoftPrompt(2, 4)
opt = torch.optim.SGD([soft.prompt], lr=0.1)
out = soft(torch.randn(3, 5, 4))
out.pow(2).mean().backward()
opt.step()
