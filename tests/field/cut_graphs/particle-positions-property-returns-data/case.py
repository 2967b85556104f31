# %%
import torch

torch.manual_seed(0)
G = torch.tensor([0.0, -9.8])


class Particles:
    def __init__(self, n):
        self._x = torch.zeros(n, 2)
        self._v = torch.zeros(n, 2)

    @property
    def positions(self):
        """read only copy for callers"""
        return self._x.data.clone()

    def launch(self, velocity):
        self._x = torch.zeros_like(self._x)
        self._v = velocity

    def tick(self, dt, drag):
        self._v = self._v + dt * (G - drag * self._v)
        self._x = self._x + dt * self._v


class World:
    def __init__(self, particles, drag=0.1):
        self.particles, self.drag = particles, drag

    def fly(self, velocity, steps=10, dt=0.05):
        self.particles.launch(velocity)
        path = []
        for _ in range(steps):
            self.particles.tick(dt, self.drag)
            path.append(self.particles.positions)
        return torch.stack(path)
# %%
def miss(path, goal):
    end = path[-1]
    return (end - goal).norm(dim=1).mean()
# %%
world = World(Particles(3))
goal = torch.tensor([[1.0, 0.2], [2.0, 0.1], [1.5, 0.6]])
velocity = torch.tensor([3.0, 4.0]).repeat(3, 1).requires_grad_()
opt = torch.optim.Adam([velocity], lr=0.2)
for it in range(5):
    opt.zero_grad()
    loss = miss(world.fly(velocity), goal)
    loss.backward()
    opt.step()
print(loss.item(), velocity)
