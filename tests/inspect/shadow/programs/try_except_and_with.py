# %%
import torch
from contextlib import contextmanager


@contextmanager
def scaled(t, factor):
    t.mul_(factor)
    try:
        yield t
    finally:
        t.div_(factor)  # wrote


# %%
w = torch.rand(4, requires_grad=True)
x = torch.rand(4)
try:
    pre = w * x
    with scaled(x, 3.0) as big:
        post = (w * big).sum()  # saved
    (pre.sum() + post).backward()
finally:
    done = True
