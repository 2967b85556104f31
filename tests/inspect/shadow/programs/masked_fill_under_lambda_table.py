# %%
import torch
acts = {
    "exp": lambda t: t.exp(),  # saved
    "tanh": lambda t: t.tanh(),
}
post = [
    lambda t: t.masked_fill_(t > 1.2, 1.2),  # wrote
    lambda t: t * 2,
]
# %%
def run(name, x):
    y = acts[name](x)
    for f in post:
        y = f(y)
    return y
# %%
x = torch.linspace(0, 1, 6, requires_grad=True)
run("exp", x).sum().backward()
