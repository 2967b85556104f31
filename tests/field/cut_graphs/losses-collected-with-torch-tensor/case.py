# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Linear(3, 2)
scenes = {"day": torch.randn(5, 3), "night": torch.randn(4, 3), "rain": torch.randn(6, 3)}
labels = {k: torch.randint(0, 2, (len(v),)) for k, v in scenes.items()}

def scene_losses():
    losses = []
    for name, x in scenes.items():
        out = net(x)
        out -= out.mean()
        losses.append(nn.functional.cross_entropy(out, labels[name]))
    return torch.tensor(losses)
# %%
total = scene_losses().mean()
total.backward()
print(total)
