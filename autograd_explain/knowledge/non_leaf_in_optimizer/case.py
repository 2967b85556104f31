# %%
import torch

torch.manual_seed(0)


class Prompt:
    def __init__(self, length, width):
        self.tokens = torch.randn(length, width, requires_grad=True) * 0.02
        self.scale = torch.ones(1, requires_grad=True)

    def learnable(self):
        return [self.tokens, self.scale]
# %%
prompt = Prompt(4, 3)
optimizer = torch.optim.Adam(prompt.learnable(), lr=0.01)
# %%
loss = (prompt.scale * prompt.tokens).square().sum()
loss.backward()
optimizer.step()
