# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
proj = nn.Linear(5, 6)
EOS = 0

def step_scores(h, finished):
    logp = proj(h).log_softmax(-1).clone()
    flat = logp.view(-1, logp.size(-1))
    flat[finished.flatten(), EOS] = -10.0
    return logp

def nll(logp, target):
    return -logp.gather(-1, target.unsqueeze(-1)).mean()
# %%
h = torch.randn(2, 3, 5)
finished = torch.tensor([[True, False, False], [False, True, False]])
target = torch.tensor([[1, 2, 3], [4, 5, 1]])
loss = nll(step_scores(h, finished), target)
loss.backward()
