# %%
import logging, time, os
import torch
from torch import nn
try:
    from tqdm.auto import tqdm
except ImportError:
    def tqdm(it, **kw):
        return it
log = logging.getLogger("t")
net = nn.Linear(2, 2)
hist = {"loss": []}
# %%
start = time.time()
for epoch in tqdm(range(5), desc="train"):
    out = net(torch.ones(3, 2)).exp()  # saved
    scale = out.detach()
    scale /= scale.max()  # wrote
    loss = (out / scale).sum()
    log.info("loss %s after %.1f", loss.item(), time.time() - start)
    loss.backward()
    hist["loss"].append(loss.item())
