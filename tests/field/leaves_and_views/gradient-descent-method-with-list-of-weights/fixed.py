# %%
import torch


class TwoLayer:
    def __init__(self, sizes, lr):
        g = torch.Generator().manual_seed(0)
        self.weights = [torch.randn(a, b, generator=g).requires_grad_() for a, b in zip(sizes, sizes[1:])]
        self.lr = lr

    def __call__(self, x):
        h = (x @ self.weights[0]).clamp_(min=0)
        return h @ self.weights[1]

    def descend(self):
        for w in self.weights:
            with torch.no_grad():
                w.sub_(self.lr * w.grad)
            w.grad = None
# %%
x = torch.linspace(-1, 1, 12).reshape(4, 3)
y = x.sum(1, keepdim=True)
model = TwoLayer([3, 5, 1], lr=0.01)
# %%
trace = []
for it in range(4):
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    model.descend()
    trace.append(loss.item())
