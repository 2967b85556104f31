"""Imported by the process that forks for `sessions`: all that a notebook needs, used once.

What is loaded and made on first use takes longer than most notebooks.
"""

from notebook import captured, load_what_replays_need
from sessions import explained

FAILS = """\
import numpy, torch
w = torch.ones(2, requires_grad=True)
h = w * 2
w += 1
"""

load_what_replays_need()
with captured():
    explained((FAILS,), watched=True)
