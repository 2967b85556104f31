# %%
import torch

torch.manual_seed(0)
DEVICE, DTYPE = torch.device("cpu"), torch.float64

def init(shape, scale=0.5):
    return (scale * torch.ones(shape)).to(DEVICE, DTYPE).requires_grad_()

params = {"theta": init((3, 2)), "bias": torch.zeros(2, dtype=DTYPE, requires_grad=True)}
# %%
x = torch.randn(10, 3, dtype=DTYPE)
y = torch.randn(10, 2, dtype=DTYPE)
theta, bias = params["theta"], params["bias"]
loss = ((x @ theta + bias - y) ** 2).mean()
loss.backward()
# %%
grads = {"bias": bias.grad, "theta": theta.grad}
print({k: None if g is None else g.norm() for k, g in grads.items()})
