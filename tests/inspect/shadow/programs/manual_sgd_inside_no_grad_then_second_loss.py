# %%
import torch
w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
b = torch.zeros(2, requires_grad=True)
x = torch.ones(3, 2)


def model(x):
    hidden = x @ w
    return (hidden @ w + b).sigmoid()  # saved


def sgd(params, lr):
    with torch.no_grad():
        for p in params:
            p -= lr * p.grad  # wrote
            p.grad.zero_()

# %%
out = model(x)
first = out.mean()
second = (out ** 2).mean()
first.backward(retain_graph=True)
sgd([w, b], 0.1)
# %%
second.backward()
