# %%
import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)


class DoseResponse(nn.Module):
    def __init__(self, p=0.2):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Dropout(p))
        self.mean = nn.Linear(16, 1)

    def forward(self, dose):
        return self.mean(self.hidden(dose)).squeeze(-1)


def fit(model, dose, effect, epochs=30):
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(epochs):
        opt.zero_grad()
        loss = (model(dose) - effect).pow(2).mean()
        loss.backward()
        opt.step()
    return loss.detach().numpy()

# %%
dose = torch.linspace(0, 3, 20).unsqueeze(1)
effect = (dose / (0.5 + dose)).squeeze(1)
effect += 0.05 * torch.randn(20)
model = DoseResponse()
print("final loss", fit(model, dose, effect))

# %%
# keep dropout on and look at the spread of the predictions
def sample_predictions(model, grid, n=25):
    model.train()
    draws = np.empty((n, len(grid)), dtype=np.float32)
    for i in range(n):
        pred = model(grid)
        draws[i] = pred
    return draws


grid = torch.linspace(0, 4, 9).unsqueeze(1)
draws = sample_predictions(model, grid)
lower, upper = np.percentile(draws, [5, 95], axis=0)
print(np.round(upper - lower, 3))
