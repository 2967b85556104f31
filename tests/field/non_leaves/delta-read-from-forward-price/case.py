# %%
import math

import torch

torch.set_default_dtype(torch.float64)


def norm_cdf(x):
    return 0.5 * (1 + torch.erf(x / math.sqrt(2)))


class Market:
    def __init__(self, spot, rate, dividend):
        self.spot = torch.tensor(spot, requires_grad=True)
        self.rate = torch.tensor(rate, requires_grad=True)
        self.dividend = dividend
        self.forwards = {}

    def forward(self, T):
        if T not in self.forwards:
            self.forwards[T] = self.spot * torch.exp((self.rate - self.dividend) * T)
        return self.forwards[T]


def black76(market, strike, vol, T, call=True):
    F = market.forward(T)
    sd = vol * math.sqrt(T)
    d1 = torch.log(F / strike) / sd + 0.5 * sd
    sign = 1.0 if call else -1.0
    payoff = sign * (F * norm_cdf(sign * d1) - strike * norm_cdf(sign * (d1 - sd)))
    return torch.exp(-market.rate * T) * payoff

# %%
market = Market(spot=100.0, rate=0.03, dividend=0.01)
vols = {0.5: torch.tensor(0.22, requires_grad=True), 1.0: torch.tensor(0.2, requires_grad=True)}
book = [(105.0, 0.5, True, 10), (95.0, 1.0, False, -4), (100.0, 1.0, True, 6)]

value = torch.zeros(())
for strike, T, call, lots in book:
    value = value + lots * black76(market, strike, vols[T], T, call)
value.backward()

# %%
# report per expiry: vega and the delta in the forward
vega = {T: v.grad for T, v in vols.items()}
delta = {}
for T, F in market.forwards.items():
    delta[T] = F.grad
print(value.item(), market.spot.grad, vega, delta)
