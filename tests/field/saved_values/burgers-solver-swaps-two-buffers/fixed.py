# %%
import torch

torch.manual_seed(0)
NX, DX, DT = 33, 1 / 32, 0.004


def advance(cur, nu):
    nxt = torch.zeros_like(cur)
    mid = cur[1:-1]
    ux = (cur[2:] - cur[:-2]) / (2 * DX)
    uxx = (cur[2:] - 2 * mid + cur[:-2]) / DX ** 2
    flux = mid * ux
    nxt[1:-1] = mid + DT * (nu * uxx - flux)
    return nxt


def simulate(u0, nu, steps):
    a = u0.clone()
    for _ in range(steps):
        a = advance(a, nu)
    return a
# %%
x = torch.linspace(0, 1, NX)
u0 = torch.sin(torch.pi * x)
observed = simulate(u0, 0.02, steps=10)
# %%
log_nu = torch.tensor(-3.0, requires_grad=True)
opt = torch.optim.Adam([log_nu], lr=0.1)
for it in range(4):
    u = simulate(u0, log_nu.exp(), steps=10)
    misfit = (u - observed).pow(2).sum()
    opt.zero_grad()
    misfit.backward()
    opt.step()
    print(it, misfit.item(), log_nu.item())
