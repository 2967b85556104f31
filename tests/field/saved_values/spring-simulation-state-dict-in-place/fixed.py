# %%
import torch

k = torch.tensor(2.0, requires_grad=True)
damping = torch.tensor(0.1, requires_grad=True)
dt = 0.05

def simulate(steps):
    state = {"pos": torch.ones(3) * torch.tensor([1.0, 0.5, -0.3]), "vel": torch.zeros(3)}
    trace = []
    for _ in range(steps):
        acc = -k * state["pos"] - damping * state["vel"]
        state["vel"] = state["vel"] + dt * acc
        state["pos"] = state["pos"] + dt * state["vel"]
        trace.append(state["pos"].mean())
    return torch.stack(trace)
# %%
observed = torch.linspace(0.4, 0.1, 8)
pred = simulate(8)
loss = ((pred - observed) ** 2).mean()
# %%
loss.backward()
print(k.grad, damping.grad)
