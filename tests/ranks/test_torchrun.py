"""Processes under torchrun: each leaves its record, and the folder is told as one account."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import warm

from autograd_explain.cli import main

HEAD = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def forward(self, x, spoil=False):
        {forward}

def main():
    dist.init_process_group("gloo")
    model = DDP(Net(), find_unused_parameters={find})
    for step in range(2):
        x = torch.randn(2, 4, requires_grad=True)
        loss = model(x, dist.get_rank() == 2 and step == 1).sum()
        loss.backward()
    dist.destroy_process_group()

main()
"""
SPOILT = """\
h = self.first(x).sigmoid()
if spoil:
    h += 1
return self.second(h)"""
UNUSED = "return self.first(x)"
TWICE = """\
h = checkpoint(self.first, x, use_reentrant=True)
return checkpoint(self.first, h, use_reentrant=True)"""


def program(folder: Path, forward: str, find: bool = False) -> tuple[Path, str]:
    text = HEAD.format(forward=forward.replace("\n", "\n        "), find=find)
    file = folder / "train.py"
    file.write_text(text)
    return file, text


def python(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", "AUTOGRAD_EXPLAIN_LANG": "en"},
        timeout=250,
    )


def explained(*arguments: object) -> str:
    """What `autograd_explain explain` prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["explain", *map(str, arguments)]) == 0
    return printed.getvalue()


def told(folder: Path, file: Path, ranks: int) -> dict[str, Any]:
    """The account of a job on so many ranks that was run with us."""
    run = ("--nproc-per-node", ranks, "--redirects", 3, "--log-dir", folder / "logs")
    job = python(
        *("torch.distributed.run", *run),
        *("-m", "autograd_explain", "run", "--check", "--report", folder / "report.json", file),
    )
    assert job.returncode == 1, job.stderr
    found: dict[str, Any] = json.loads(explained("--json", folder / "logs"))
    return found


def line_of(text: str, part: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


@pytest.mark.timeout(300)
def test_the_rank_that_is_at_fault_and_those_that_failed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOGRAD_EXPLAIN_LANG", "en")
    file, text = program(tmp_path, SPOILT)
    account = told(tmp_path, file, 3)
    (cause,) = account["causes"]
    assert (cause["ranks"], cause["id"]) == ([2], "saved_value_overwritten")
    events = {e["what"]: e["place"]["line"] for e in cause["report"]["events"]}
    assert events["changed"] == line_of(text, "h += 1")
    assert cause["place"]["line"] == line_of(text, "loss.backward()")
    assert {late["rank"] for late in account["consequences"]} <= {0, 1}
    assert [r["outcome"] for r in cause["report"]["rewrites"]] == ["not_tried", "not_tried"]
    assert "`--verify` tries what needs none" in cause["report"]["rewrites"][0]["outcome_reason"]
    record = json.loads((tmp_path / "report.rank2.json").read_text())
    assert (record["rank"], record["world_size"]) == (2, 3)
    # By eye: the rank and the user's line stand above the report.
    shown = explained(tmp_path / "report.rank2.json")
    assert shown.startswith(f"rank 2 · {file}:{cause['place']['line']} in main()  loss.backward()")
    assert "h = h + 1" in shown


VERIFIES = """
import torch
import torch.distributed as dist
import autograd_explain

def verdict(name, new):
    text = open(name).read()
    found = autograd_explain.verify(text.replace("h += 1", new), file=name, budget=60)
    return str(found).partition("gradients")[0]

dist.init_process_group("gloo")
told = [verdict("alone.py", f"h = h + {n}") for n in (1, 2)] + [verdict("train.py", "pass")]
dist.all_reduce(torch.ones(1))  # the job goes on
print(dist.get_rank(), *told, sep=chr(10), flush=True)
dist.destroy_process_group()
"""


@pytest.mark.timeout(120)
def test_the_ranks_of_a_job_have_candidates_tried(tmp_path: Path) -> None:
    """Each by itself; a program that speaks to the others is not tried."""
    _, text = program(tmp_path, SPOILT)
    alone = text.replace("DDP(Net(), find_unused_parameters=False)", "Net()")
    alone = alone.replace("dist.get_rank() == 2", "True")
    own = (line for line in alone.splitlines() if "_process_group" not in line)
    (tmp_path / "alone.py").write_text("\n".join(own))
    (tmp_path / "job.py").write_text(VERIFIES)
    run = ("torch.distributed.run", "--nproc-per-node", 2, "--redirects", 3, "--log-dir")
    job = python(*run, tmp_path / "logs", tmp_path / "job.py", cwd=tmp_path)
    assert job.returncode == 0, job.stderr
    printed = [file.read_text().splitlines() for file in (tmp_path / "logs").rglob("stdout.log")]
    assert sorted(printed) == [
        [
            *(str(rank), "verified: the ", "differs: the "),
            "not tried: the program uses the network (`init_process_group`)",
        ]
        for rank in (0, 1)
    ]


@pytest.mark.timeout(300)
@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("forward", "find", "cause", "failing"),
    [
        (UNUSED, False, "ddp_unused_parameters", "loss = model("),
        (TWICE, True, "ddp_ready_twice", "loss.backward()"),
    ],
)
def test_what_all_ranks_met_is_one_report(
    tmp_path: Path, forward: str, find: bool, cause: str, failing: str
) -> None:
    file, text = program(tmp_path, forward, find)
    account = told(tmp_path, file, 2)
    (group,) = account["causes"]
    assert (group["ranks"], group["id"]) == ([0, 1], cause)
    assert group["place"]["line"] == line_of(text, failing)
    assert account["consequences"] == []


def elastic(folder: Path) -> dict[str, str]:
    """What torchrun tells a process."""
    return {
        **os.environ,
        **{"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "AUTOGRAD_EXPLAIN_LANG": "en"},
        "TORCHELASTIC_ERROR_FILE": str(folder / "1" / "error.json"),
    }


@pytest.mark.timeout(120)
def test_an_entry_point_of_ones_own_leaves_a_record(tmp_path: Path) -> None:
    text = "import autograd_explain, torch\nautograd_explain.install()\n"
    (tmp_path / "train.py").write_text(text + "w = torch.ones(2, requires_grad=True)\nw += 1\n")
    ended = warm.run("train.py", folder=tmp_path, variables=elastic(tmp_path))
    assert ended.status == 1, ended.err
    record = json.loads((tmp_path / "1" / "autograd_explain.json").read_text())
    assert record["error"]["places"][-1]["line"] == 4
    assert [(r["id"], r["rank"]) for r in record["reports"]] == [("leaf_written", 1)]


SLOW = """
import time
from pathlib import Path
PATTERNS = ("acme-slow",)
MESSAGES = {"acme-slow": "Acme cannot differentiate this slowly"}
EXAMPLE = {}
def diagnose(scene):
    Path("began").touch()
    time.sleep(60)
"""


@pytest.mark.timeout(120)
def test_a_signal_ends_an_explanation_at_once(tmp_path: Path) -> None:
    cause = tmp_path / "causes" / "slow_one"
    cause.mkdir(parents=True)
    (cause / "diagnose.py").write_text(SLOW)
    for language in ("en", "ja", "zh"):
        (cause / f"{language}.md").write_text("---\ntitle: T\n---\n## summary\nS\n\n## cause\nC\n")
    text = "import torch\nraise RuntimeError('Acme cannot differentiate this slowly')\n"
    (tmp_path / "train.py").write_text(text)
    process = subprocess.Popen(
        [sys.executable, "-m", "autograd_explain", "run", "--causes", "causes", "train.py"],
        cwd=tmp_path,
        env=elastic(tmp_path),
    )
    while not (tmp_path / "began").exists():
        assert process.poll() is None
        time.sleep(0.05)
    # What is known without an explanation is on disk already.
    record = json.loads((tmp_path / "1" / "autograd_explain.json").read_text())
    assert record["error"]["places"][-1]["line"] == 2 and record["reports"] == []
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == -signal.SIGTERM
    assert time.monotonic() - started < 1
