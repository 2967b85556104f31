# %%
import torch
from torch import nn


class Module(nn.Module):
    def training_step(self, batch, idx): raise NotImplementedError
    def configure_optimizers(self): raise NotImplementedError


class Trainer:
    def __init__(self, epochs=1, callbacks=()):
        self.epochs, self.callbacks = epochs, list(callbacks)

    def fit(self, module, loader):
        opts = module.configure_optimizers()
        if not isinstance(opts, (list, tuple)):
            opts = [opts]
        for epoch in range(self.epochs):
            for idx, batch in enumerate(loader):
                for k, opt in enumerate(opts):
                    loss = module.training_step(batch, k)
                    opt.zero_grad()
                    for cb in self.callbacks:
                        cb(module, loss)
                    loss.backward()
                    opt.step()


# %%
class Auto(Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(4, 2), nn.Linear(2, 4)

    def forward(self, x):
        return self.dec(torch.relu(self.enc(x)))

    def training_step(self, batch, k):
        z = self(batch)
        w = torch.softmax(z, dim=1)  # saved
        if k == 1:
            w.sub_(w.mean())  # wrote
        return (w * batch).sum()

    def configure_optimizers(self):
        return [torch.optim.SGD(self.enc.parameters(), 0.1), torch.optim.SGD(self.dec.parameters(), 0.1)]


# %%
torch.manual_seed(0)
Trainer(2, callbacks=[lambda m, l: None]).fit(Auto(), torch.randn(6, 5, 4).unbind(0))
