# %%
from dataclasses import dataclass, field
import torch


@dataclass
class State:
    pos: torch.Tensor
    vel: torch.Tensor
    trace: list = field(default_factory=list)

    @property
    def energy(self):
        return 0.5 * (self.vel ** 2).sum()  # saved

    def advance(self, force, dt=0.1):
        self.vel.add_(force * dt)  # wrote
        self.pos = self.pos + self.vel * dt
        self.trace.append(self.energy)


# %%
k = torch.tensor(2.0, requires_grad=True)
s = State(torch.ones(2), torch.zeros(2))
for step in range(4):
    s.advance(-k * s.pos)
loss = torch.stack(s.trace).sum()
loss.backward()
