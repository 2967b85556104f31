"""How long an explanation takes, against the size of the graph and the number of live tensors.

usage: python benchmarks/explain.py [--json FILE]

Each row is the median of several explanations of one failed backward, first imports left out.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import statistics
import time

import torch
from IPython.core.interactiveshell import InteractiveShell

PROGRAM = """
import torch
keep = [torch.ones(1) for _ in range({tensors})]
w = torch.ones(4, requires_grad=True)
h = w * 2
for _ in range({nodes}):
    h = h + 1
g = torch.sigmoid(h)
g += 1
g.sum().backward()
"""


def seconds_to_explain(nodes: int, tensors: int, repeats: int = 5) -> float:
    """The median time of `explain()` after a failing cell with a graph of `nodes` nodes."""
    import autograd_explain

    shell = InteractiveShell.instance()
    with contextlib.redirect_stdout(io.StringIO()):
        result = shell.run_cell(PROGRAM.format(nodes=nodes, tensors=tensors), store_history=True)
    error = result.error_in_exec
    assert isinstance(error, RuntimeError), error
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        explanation = autograd_explain.explain(error)
        times.append(time.perf_counter() - begin)
        assert explanation is not None and explanation.to_dict()["id"] == "saved_value_overwritten"
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="write the rows to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "autograd_explain")
    seconds_to_explain(10, 10)  # imports
    rows = []
    print(f"{'graph nodes':>12} {'live tensors':>13} {'seconds':>9}")
    for nodes, tensors in (
        (100, 10),
        (1_000, 10),
        (10_000, 10),
        (100_000, 10),
        (1_000, 1_000),
        (1_000, 20_000),
    ):
        seconds = seconds_to_explain(nodes, tensors)
        rows.append({"nodes": nodes, "tensors": tensors, "seconds": seconds})
        print(f"{nodes:>12} {tensors:>13} {seconds:>9.3f}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
