# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class RelativisticAverage(nn.Module):
    def __init__(self):
        super().__init__()
        self.bce = nn.BCEWithLogitsLoss()

    def forward(self, better, worse):
        up = self.bce(better - worse.mean(), torch.ones_like(better))
        down = self.bce(worse - better.mean(), torch.zeros_like(worse))
        return (up + down) / 2
# %%
class InpaintModel:
    def __init__(self, n_pix=16, lam=10.0):
        self.gen = nn.Sequential(nn.Linear(n_pix, 32), nn.ReLU(), nn.Linear(32, n_pix), nn.Tanh())
        self.disc = nn.Sequential(nn.Linear(n_pix, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
        self.gan, self.lam = RelativisticAverage(), lam
        self.optimizers = {
            "G": torch.optim.SGD(self.gen.parameters(), lr=0.01),
            "D": torch.optim.SGD(self.disc.parameters(), lr=0.01),
        }

    def set_input(self, image, mask):
        self.real, self.mask = image, mask

    def forward(self):
        self.fake = self.gen(self.real * (1 - self.mask))

    def backward_D(self):
        self.pred_fake = self.disc(self.fake.detach())
        self.pred_real = self.disc(self.real)
        loss = self.gan(self.pred_real, self.pred_fake)
        loss.backward()
        return loss

    def backward_G(self):
        self.pred_fake = self.disc(self.fake)
        adv = self.gan(self.pred_fake, self.pred_real.detach())
        loss = adv + self.lam * (self.fake - self.real).abs().mean()
        loss.backward()
        return loss

    def optimize_parameters(self):
        self.forward()
        for opt in self.optimizers.values():
            opt.zero_grad()
        losses = self.backward_D(), self.backward_G()
        for opt in self.optimizers.values():
            opt.step()
        return losses
# %%
model = InpaintModel()
image = torch.rand(8, 16) * 2 - 1
mask = torch.zeros(16)
mask[5:11] = 1
model.set_input(image, mask)
loss_D, loss_G = model.optimize_parameters()
print(loss_D.item(), loss_G.item())
