# %%
import torch

words = ["emma", "olivia", "ava", "mia", "amelia"]
chars = ["."] + sorted(set("".join(words)))
stoi = {c: i for i, c in enumerate(chars)}
pairs = [(stoi[a], stoi[b]) for w in words for a, b in zip("." + w, w + ".")]
xs, ys = (torch.tensor(col) for col in zip(*pairs))
# %%
torch.manual_seed(0)
W = torch.randn(len(chars), len(chars), requires_grad=True)
xenc = torch.nn.functional.one_hot(xs, num_classes=len(chars)).float()
# %%
# forward pass
logits = xenc @ W
counts = logits.exp()
prob = counts / counts.sum(1, keepdim=True)
loss = -prob[torch.arange(len(ys)), ys].log().mean() + 0.01 * (W ** 2).mean()
print(loss.item())
# %%
def descend(lr):
    W.grad = None
    loss.backward()
    W.data += -lr * W.grad
    return loss.item()
# %%
curve = []
for k in range(30):
    curve.append(descend(lr=5.0))
print(curve[0], "->", curve[-1])
