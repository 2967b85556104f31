# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


def mlp(n_in, n_out, last=None):
    layers = [nn.Linear(n_in, 16), nn.ReLU(), nn.Linear(16, n_out)]
    return nn.Sequential(*layers) if last is None else nn.Sequential(*layers, last)


class Agent:
    def __init__(self, n_obs, n_act, n_state, n_joint, lr=0.05):
        self.actor = mlp(n_obs, n_act, nn.Tanh())
        self.critic = mlp(n_state + n_joint, 1)
        self.actor_opt = torch.optim.SGD(self.actor.parameters(), lr=lr)
# %%
class Team:
    def __init__(self, sizes, n_act=2):
        n_state, n_joint = sum(sizes.values()), n_act * len(sizes)
        self.agents = {name: Agent(n, n_act, n_state, n_joint) for name, n in sizes.items()}

    def learn_policies(self, obs):
        state = torch.cat(list(obs.values()), dim=1)
        actions = {name: agent.actor(obs[name]) for name, agent in self.agents.items()}
        report = {}
        for name, agent in self.agents.items():
            joint = torch.cat([a if n == name else a.detach() for n, a in actions.items()], dim=1)
            loss = -agent.critic(torch.cat([state, joint], dim=1)).mean()
            agent.actor_opt.zero_grad()
            loss.backward()
            agent.actor_opt.step()
            report[name] = loss.item()
        return report
# %%
team = Team({"predator": 5, "prey": 3})
memory = [{"predator": torch.randn(32, 5), "prey": torch.randn(32, 3)} for _ in range(2)]
report = team.learn_policies(memory[0])
print(report)
