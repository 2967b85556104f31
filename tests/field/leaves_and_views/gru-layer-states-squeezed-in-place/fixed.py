# %%
import torch
from torch import nn

torch.manual_seed(0)


class KeywordEncoder(nn.Module):
    def __init__(self, n_mels=5, speaker_dim=3, hidden=6, num_layers=2):
        super().__init__()
        self.hidden, self.num_layers = hidden, num_layers
        self.init_state = nn.Linear(speaker_dim, num_layers * hidden)
        self.cells = nn.ModuleList(nn.GRUCell(n_mels if i == 0 else hidden, hidden) for i in range(num_layers))

    def initial(self, speaker):
        h0 = self.init_state(speaker).tanh()
        return h0.view(-1, self.num_layers, self.hidden).transpose(0, 1)
# %%
class KeywordSpotter(KeywordEncoder):
    def __init__(self, n_words=4, **kwargs):
        super().__init__(**kwargs)
        self.classify = nn.Linear(self.hidden, n_words)

    def forward(self, mels, speaker):
        h0 = self.initial(speaker)
        states = [h.squeeze(0) for h in h0.split(1)]
        for frame in mels.unbind(1):
            for i, cell in enumerate(self.cells):
                states[i] = cell(frame, states[i])
                frame = states[i]
        return self.classify(states[-1])
# %%
model = KeywordSpotter()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
mels, speaker = torch.randn(7, 10, 5), torch.randn(7, 3)
words = torch.randint(0, 4, (7,))

with torch.no_grad():
    print("before:", (model(mels, speaker).argmax(1) == words).float().mean().item())
# %%
for epoch in range(2):
    logits = model(mels, speaker)
    loss = nn.functional.cross_entropy(logits, words)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss:", loss.item())
