# %%
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Conv2d(1, 1, 3, padding=1)
noisy, clean = torch.rand(2, 1, 8, 8), torch.rand(2, 1, 8, 8)

class Metrics:
    def __init__(self):
        self.values = {}

    def psnr(self, img, ref, peak=1.0):
        img = img.clamp_(0, peak)
        mse = (img - ref).pow(2).mean()
        self.values["psnr"] = (10 * torch.log10(peak ** 2 / mse)).item()
        return self.values["psnr"]
# %%
restored = net(noisy)
loss = F.mse_loss(restored, clean)
metric = Metrics().psnr(restored, clean)
# %%
loss.backward()
print(f"{metric:.2f} dB")
