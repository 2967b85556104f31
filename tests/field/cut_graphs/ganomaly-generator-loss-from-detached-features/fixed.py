# %%
import torch
from torch import nn

torch.manual_seed(0)


class Discriminator(nn.Module):
    def __init__(self, n_in=8, hidden=6):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(n_in, hidden), nn.LeakyReLU(0.2))
        self.classify = nn.Linear(hidden, 1)

    def forward(self, x):
        feat = self.features(x)
        return self.classify(feat).squeeze(-1), feat
# %%
class Ganomaly:
    def __init__(self, n_in=8, w_adv=1.0, w_con=10.0, w_lat=5.0):
        self.gen = nn.Sequential(nn.Linear(n_in, 4), nn.Tanh(), nn.Linear(4, n_in))
        self.disc = Discriminator(n_in)
        self.w_adv, self.w_con, self.w_lat = w_adv, w_con, w_lat
        self.opt_g = torch.optim.SGD(self.gen.parameters(), lr=0.05)
        self.opt_d = torch.optim.SGD(self.disc.parameters(), lr=0.05)

    def forward(self, x):
        self.real, self.fake = x, self.gen(x)
        self.pred_real, self.feat_real = self.disc(self.real)
        self.pred_fake, self.feat_fake = self.disc(self.fake.detach())

    def backward_g(self):
        bce = nn.functional.binary_cross_entropy_with_logits
        pred_fake, feat_fake = self.disc(self.fake)
        err_adv = bce(pred_fake, torch.ones_like(pred_fake))
        err_con = (self.fake - self.real).abs().mean()
        err_lat = (feat_fake - self.feat_real).pow(2).mean()
        self.err_g = self.w_adv * err_adv + self.w_con * err_con + self.w_lat * err_lat
        self.err_g.backward(retain_graph=True)

    def backward_d(self):
        bce = nn.functional.binary_cross_entropy_with_logits
        err_real = bce(self.pred_real, torch.ones_like(self.pred_real))
        err_fake = bce(self.pred_fake, torch.zeros_like(self.pred_fake))
        ((err_real + err_fake) / 2).backward()

    def optimize(self, x):
        self.forward(x)
        self.opt_g.zero_grad()
        self.backward_g()
        self.opt_g.step()
        self.opt_d.zero_grad()
        self.backward_d()
        self.opt_d.step()
        return self.err_g.item()
# %%
normal_data = torch.randn(30, 3) @ torch.randn(3, 8)
gan = Ganomaly()
# %%
history = []
for epoch in range(3):
    for x in normal_data.split(10):
        history.append(gan.optimize(x))
print(history[0], history[-1])
