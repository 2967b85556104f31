# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


def freeze(module, flag=True):
    for p in module.parameters():
        p.requires_grad_(not flag)
    return module


class Player(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, 12), nn.LeakyReLU(0.2, inplace=True), nn.Linear(12, n_out))

    def forward(self, x):
        return self.net(x)

# %%
painter, judge = Player(3, 2), Player(2, 1)
opt = {
    "judge": torch.optim.SGD(judge.parameters(), lr=0.05),
    "painter": torch.optim.SGD(painter.parameters(), lr=0.05),
}
wanted = torch.randn(64, 2)
wanted[:, 1] += wanted[:, 0]


def judge_turn():
    freeze(painter)
    freeze(judge, False)
    return judge(painter(torch.randn(16, 3))).mean() - judge(wanted[torch.randint(0, 64, (16,))]).mean()


def painter_turn():
    freeze(judge)
    freeze(painter, False)
    return -judge(painter(torch.randn(16, 3))).mean()

# %%
log = torch.zeros(4)
for turn in range(4):
    name, play = ("judge", judge_turn) if turn % 2 == 0 else ("painter", painter_turn)
    loss = play()
    opt[name].zero_grad()
    loss.backward()
    opt[name].step()
    log[turn] += loss.item()
print(log)
