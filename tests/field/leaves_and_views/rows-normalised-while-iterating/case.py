# %%
import torch

torch.manual_seed(0)
w = torch.randn(4, 3, requires_grad=True)

def normalise_rows(mat):
    out = mat * 1.0
    for row in out:
        row /= row.norm()
    return out
# %%
query = torch.randn(3)
unit = normalise_rows(w)
score = (unit @ query).max()
score.backward()
print(w.grad)
