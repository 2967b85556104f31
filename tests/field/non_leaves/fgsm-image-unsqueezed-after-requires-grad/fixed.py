# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 3)).eval()
raw = torch.rand(3, 2, 2)

def preprocess(img):
    img = (img - 0.5) / 0.25
    return img.clone().unsqueeze(0).requires_grad_(True)
# %%
batch = preprocess(raw)
loss = nn.CrossEntropyLoss()(model(batch), torch.tensor([2]))
loss.backward()
# %%
grad = batch.grad
sign = grad.sign() if grad is not None else torch.zeros_like(batch)
adv = (batch + 0.03 * sign).detach()
