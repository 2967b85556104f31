# %%
import torch

torch.manual_seed(0)


def select(score):
    soft = torch.sigmoid(score)
    return {"soft": soft, "hard": (soft > 0.5).float()}


# %%
weight = torch.randn(3, requires_grad=True)
inputs, wanted = torch.randn(8, 3), torch.randint(0, 2, (8,)).float()
# %%
picked = select(inputs @ weight)
loss = (picked["hard"] - wanted).abs().mean()
loss.backward()
