"""What training loops by hand pay under `%%autograd_check`, by the number of their rounds.

usage: python benchmarks/loops.py [--rounds N ...] [--json FILE]

Each loop runs in one cell of a real shell, plainly and watched, in turns within one process.  Shown
are seconds of the process (CPU) and their ratio.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import torch
from shells import new_shell, run, write

_SETUP = """
import torch
from torch.nn import functional as F
torch.manual_seed(0)
"""
#: By what they train.
LOOPS = {
    "linear regression": """
x, w = torch.randn(50, 1), torch.zeros(1, requires_grad=True)
y, b = 3 * x + 1, torch.zeros(1, requires_grad=True)
for i in range({rounds}):
    loss = ((w * x + b - y) ** 2).mean()
    loss.backward()
    for p in (w, b):
        p.data -= 0.01 * p.grad
        p.grad.zero_()
""",
    "embedding and MLP": """
tokens, labels = torch.randint(0, 27, (5000, 3)), torch.randint(0, 27, (5000,))
C, W1, b1 = torch.randn(27, 10), torch.randn(30, 200) * 0.2, torch.randn(200) * 0.01
W2, b2 = torch.randn(200, 27) * 0.1, torch.zeros(27)
parameters = [C, W1, b1, W2, b2]
for p in parameters:
    p.requires_grad = True
losses = []
for i in range({rounds}):
    batch = torch.randint(0, len(tokens), (32,))
    hidden = torch.tanh(C[tokens[batch]].view(32, -1) @ W1 + b1)
    loss = F.cross_entropy(hidden @ W2 + b2, labels[batch])
    for p in parameters:
        p.grad = None
    loss.backward()
    for p in parameters:
        p.data += -0.1 * p.grad
    losses.append(loss.log10().item())
""",
    "returns of a policy": """
table, rewards = torch.zeros(6, 2, requires_grad=True), torch.randn(6, 2)
returns, baseline = torch.zeros(8), torch.zeros(6)
for i in range({rounds}):
    states = torch.randint(0, 6, (8,))
    policy = torch.softmax(table[states], 1)
    actions = torch.multinomial(policy.detach(), 1)[:, 0]
    for t in range(8):
        returns[t] = rewards[states[t], actions[t]] - baseline[states[t]]
        baseline[states[t]] += 0.1 * returns[t].item()
    loss = -(policy[range(8), actions].log() * returns).mean()
    loss.backward()
    table.data -= 0.1 * table.grad
    table.grad = None
""",
}
_WATCHED = "%%autograd_check\n"


@dataclass(frozen=True)
class Row:
    """Seconds of one loop, plain and watched."""

    trains: str
    rounds: int
    plain: float
    watched: float


def measure(trains: str, rounds: int) -> Row:
    shell = new_shell()
    shell.run_line_magic("load_ext", "autograd_explain")
    run(shell, _SETUP)
    cell = LOOPS[trains].format(rounds=rounds)
    return Row(trains, rounds, run(shell, cell), run(shell, _WATCHED + cell))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, nargs="+", default=(1_000, 10_000, 100_000))
    parser.add_argument("--json", help="write the rows to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for trains in LOOPS:
        for rounds in options.rounds:
            row = measure(trains, rounds)
            rows.append(row)
            ratio = row.watched / row.plain
            print(
                f"{trains:20} {rounds:7,} {row.plain:8.2f} {row.watched:8.2f} {f'×{ratio:.1f}':>7}"
            )
    write(rows, options.json)


if __name__ == "__main__":
    main()
