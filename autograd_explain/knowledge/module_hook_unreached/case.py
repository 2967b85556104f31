# %%
import torch

torch.manual_seed(0)


class Heads(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.spread = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)

    def forward(self, x):
        return {"mean": self.mean(x), "spread": self.spread(x).exp()}


heads = Heads()
seen = []
heads.register_full_backward_hook(lambda module, grad_in, grad_out: seen.append(grad_out))
# %%
out = heads(torch.randn(4, 3, requires_grad=True))
(out["mean"] / out["spread"]).sum().backward()
