# %%
import torch

torch.manual_seed(0)


@torch.no_grad()
def halves(frame):
    middle = frame.shape[1] // 2
    return frame[:, :middle], frame[:, middle:]
# %%
frame = torch.zeros(2, 6)
shift = torch.randn(2, 3, requires_grad=True)
left, right = halves(frame)
left += shift
# %%
loss = (frame - 1).square().sum()
loss.backward()
