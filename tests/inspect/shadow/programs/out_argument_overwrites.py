# %%
import torch
a = torch.rand(3, 3)
b = torch.rand(3, 3)
w = torch.rand(3, 3, requires_grad=True)
buf = torch.empty(3, 3)
# %%
total = torch.zeros(())
for i in range(2):
    torch.add(a, b, out=buf)  # wrote
    total = total + (w * buf).sum()  # saved
    a = a + 1
total.backward()
