"""How well bugs are named and repaired: `python tests/injection/measure.py --injected 500`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from injection.generator import KINDS, LOUD, programs
from injection.run import Measured, measure


def table(found: list[Measured]) -> str:
    """A line for each kind and one for all."""
    lines = []
    for kind in (*sorted({m.kind for m in found}), "all"):
        some = [m for m in found if kind in (m.kind, "all")]
        named, repaired = sum(m.named for m in some), sum(m.repaired for m in some)
        verified = sum(m.outcome == "verified" for m in some)
        false = sum(bool(m.false) for m in some)
        n, seconds = len(some), sum(m.seconds for m in some) / len(some)
        lines.append(
            f"{kind:8} {n:4}  named {named / n:6.1%}  repaired {repaired / n:6.1%}"
            f"  verified {verified / n:6.1%}  false {false}  {seconds:.2f} s each"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--injected", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="how many to pass over")
    parser.add_argument("--mode", default="check", choices=["check", "hook"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=list(LOUD), choices=list(KINDS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="the one program of this name")
    parser.add_argument("--show", action="store_true", help="print what is not named or repaired")
    options = parser.parse_args()
    import torch
    import torch._dynamo

    torch.set_num_threads(1)
    end = options.first + options.injected
    cases = list(islice(programs(options.seed, tuple(options.kinds)), options.first, end))
    if options.only:
        cases = [c for c in cases if c.name == options.only]
    found = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for case, one in zip(
            cases, pool.map(lambda c: measure(c, options.mode), cases), strict=True
        ):
            found.append(one)
            if options.show and len(found) % 25 == 0:
                print(table(found), flush=True)
            if options.show and not (one.named and one.repaired and not one.false):
                print(f"{one.name}: {one.cause} named={one.named} {sorted(case.guilty)} got {one.places[:2]}"
                      f" repaired={one.repaired} {one.outcome} FALSE={one.false} | {one.note}", flush=True)  # fmt: skip
            if options.only:
                print("\n# %%\n".join(case.wrong), "\n-----\n", case.grads)
                for rewrite in one.report["rewrites"] if one.report else ():
                    print(rewrite["outcome"], rewrite["outcome_reason"], rewrite["title"])
                    print("\n".join(e["diff"] for e in rewrite["edits"]))
                print(one)
    print(Counter(m.cause for m in found))
    print(table(found))


if __name__ == "__main__":
    main()
