# %%
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
shapes = []


class Gate(torch.nn.Module):
    def forward(self, x):
        return (2 * x).sigmoid()


gate = Gate()
gate.register_backward_hook(lambda module, grad_in, grad_out: shapes.append(grad_in[0].shape))
# %%
loss = gate(net(torch.randn(5, 3))).mean()
loss.backward()
