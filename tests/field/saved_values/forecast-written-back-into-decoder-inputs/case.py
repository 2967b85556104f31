# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


class Decoder(nn.Module):
    def __init__(self, n_features, hidden, target_idx):
        super().__init__()
        self.cell = nn.GRUCell(n_features, hidden)
        self.head = nn.Linear(hidden, len(target_idx))
        self.target_idx = target_idx

    def one_step(self, x, h):
        h = self.cell(x, h)
        return self.head(h), h

    def forward(self, inputs, h, teacher_forcing=False):
        outputs = []
        curr_input = inputs[:, 0]
        for t in range(inputs.size(1)):
            y, h = self.one_step(curr_input, h)
            outputs.append(y)
            if t + 1 < inputs.size(1):
                curr_input = inputs[:, t + 1]
                if not teacher_forcing:
                    curr_input[:, self.target_idx] = y
        return torch.stack(outputs, dim=1)
# %%
def make_batch(n=6, horizon=5):
    hour = torch.arange(horizon).repeat(n, 1) / 24
    holiday = torch.randint(0, 2, (n, horizon)).float()
    load = torch.sin(hour * 6.28) + 0.3 * holiday
    known_future = torch.stack([load, hour, holiday], dim=-1)
    return known_future, load.unsqueeze(-1).clone()
# %%
known, target = make_batch()
decoder = Decoder(3, 8, [0])
opt = torch.optim.Adam(decoder.parameters(), lr=1e-2)
h0 = torch.zeros(known.size(0), 8)

pred = decoder(known, h0)
loss = (pred - target).abs().mean()
loss.backward()
opt.step()
