# %%
import torch
import torch.nn as nn

torch.manual_seed(0)


def make_net(n_class):
    return nn.Sequential(
        nn.Conv1d(2, 4, 3),
        nn.BatchNorm1d(4),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(4, n_class),
    )
# %%
def transfer(state, net):
    """事前学習の重みのうち、形が合うものだけを写す"""
    copied = []
    for name, buf in net.named_buffers():
        buf.copy_(state[name])
    for name, p in net.named_parameters():
        src = state.get(name)
        if src is None or src.shape != p.shape:
            continue
        p.copy_(src)
        copied.append(name)
    return copied
# %%
pretrained = make_net(10)
pretrained(torch.randn(16, 2, 12))      # 統計量をためる
net = make_net(3)
copied = transfer(pretrained.state_dict(), net)
# %%
ecg, label = torch.randn(8, 2, 12), torch.randint(0, 3, (8,))
loss = nn.functional.cross_entropy(net(ecg), label)
loss.backward()
print(copied, loss.item())
