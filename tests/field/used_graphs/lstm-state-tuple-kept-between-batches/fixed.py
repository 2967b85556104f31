# %%
import torch
import torch.nn as nn

torch.manual_seed(0)
lstm = nn.LSTM(input_size=2, hidden_size=6, batch_first=True)
fc = nn.Linear(6, 2)
params = list(lstm.parameters()) + list(fc.parameters())
opt = torch.optim.SGD(params, lr=0.05)
# %%
series = torch.randn(4, 24, 2).cumsum(1)
chunks = series.split(8, dim=1)
state = (torch.zeros(1, 4, 6), torch.zeros(1, 4, 6))
# %%
losses = []
for i, chunk in enumerate(chunks):
    inp, tgt = chunk[:, :-1], chunk[:, 1:]
    state = tuple(s.detach() for s in state)
    out, state = lstm(inp, state)
    loss = ((fc(out) - tgt) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 1.0)
    opt.step()
    losses.append(loss.item())
    if i % 2 == 0:
        print(i, losses[-1])
