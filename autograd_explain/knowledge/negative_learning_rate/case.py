# %%
import torch

torch.manual_seed(0)
policy = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(policy.parameters(), lr=-0.05)
# %%
reward = torch.log_softmax(policy(torch.ones(1, 3)), dim=1)[0, 1]
reward.backward()
optimizer.step()
