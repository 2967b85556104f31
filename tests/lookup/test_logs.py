"""Logs of any size and shape: every message once, with its count and its first place."""

from __future__ import annotations

import io
import random
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograd_explain.search.logs import BLOCK, LogReport, Scanner, scan, scan_file

VERSION = (
    "one of the variables needed for gradient computation has been modified by an inplace "
    "operation: [torch.FloatTensor [2, 2]], which is output 0 of TBackward, is at version 2; "
    "expected version 1 instead. Hint: enable anomaly detection to find the operation that failed "
    "to compute its gradient, with torch.autograd.set_detect_anomaly(True)."
)
LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
NONLEAF = "can't optimize a non-leaf Tensor"
DDP = """Expected to have finished reduction in the prior iteration before starting a new one. \
This error indicates that your module has parameters that were not used in producing loss. \
You can enable unused parameter detection by passing the keyword argument \
`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by
making sure all `forward` function outputs participate in calculating loss.
If you already have done the above, then the distributed data parallel module wasn't able to \
locate the output tensors in the return value of your module's `forward` function. Please include \
the loss function and the structure of the return value of `forward` of your module when \
reporting this issue (e.g. list, dict, iterable).
Parameter indices which did not receive grad for rank 1: 4 5
 In addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or \
DETAIL to print out information about which particular parameters did not receive gradient on \
this rank as part of this error"""
TRACEBACK = f"""Traceback (most recent call last):
  File "/home/me/train.py", line 12, in <module>
    optimizer = torch.optim.SGD([w * 2], lr=0.1)
  File "/usr/lib/python3.11/site-packages/torch/optim/optimizer.py", line 1079, in add_param_group
    raise ValueError("{NONLEAF}")
ValueError: {NONLEAF}
"""


def scanned(text: str | bytes) -> LogReport:
    return scan(io.BytesIO(text.encode() if isinstance(text, str) else text))


def summary(report: LogReport) -> list[tuple[str, int, int]]:
    return [(f.match.pattern, f.line, f.count) for f in report.found]


def test_a_traceback_counts_once() -> None:
    """Python prints the raising line as well, message and all."""
    report = scanned(f"start\n{TRACEBACK}end\n")
    assert summary(report) == [("optimizer-nonleaf", 7, 1)]
    assert report.lines == 8


def test_the_place_is_that_of_the_first() -> None:
    text = f"α\nRuntimeError: {LEAF}\nx\nRuntimeError: {LEAF}\nRuntimeError: {VERSION}\n"
    report = scanned(text)
    assert summary(report) == [("leaf-inplace", 2, 2), ("inplace-version-mismatch", 5, 1)]
    raw = text.encode()
    for found in report.found:
        assert raw[found.offset :].startswith(found.match.message.encode())


def test_captures_tell_bugs_apart_but_counters_do_not() -> None:
    lines = [VERSION, VERSION.replace("version 2", "version 9"), VERSION.replace("[2, 2]", "[7]")]
    report = scanned("\n".join(lines))
    assert [f.count for f in report.found] == [2, 1]
    assert [f.match.captures["shape"] for f in report.found] == ["[2, 2]", "[7]"]


PREFIXES = {
    "rank": "[rank0]: ",
    "rank and time": "[rank3]: 2026-01-02 03:04:05,678 ERROR ",
    "time": "2026-01-02T03:04:05.678Z ",
    "docker": "trainer/1 | ",
    "ray": "(train_fn pid=4242, ip=10.0.0.1) ",
    "pytest": "E       ",
    "quoted": "> > ",
    "none": "",
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_several_lines_with_prefixes(prefix: str, end: str) -> None:
    lines = ["before", *f"RuntimeError: {DDP}".split("\n"), "after"]
    report = scanned(end.join(prefix + line for line in lines))
    assert summary(report) == [("ddp-prior-iteration-unused", 2, 1)]
    match = report.found[0].match
    assert match.captures == {"rank": "1", "indices": "4 5"}


def test_colours() -> None:
    text = f"\x1b[0;31mRuntimeError\x1b[0m: \x1b[1m{LEAF}\x1b[0m\n"
    report = scanned(text)
    assert summary(report) == [("leaf-inplace", 1, 1)]
    assert text.encode()[report.found[0].offset :].startswith(LEAF.encode())


def test_a_colour_within_a_message() -> None:
    report = scanned(f"\x1b[31mRuntimeError: {LEAF[:20]}\x1b[1;31m{LEAF[20:]}\x1b[0m\n")
    assert summary(report) == [("leaf-inplace", 1, 1)]


def test_progress_bars_and_json() -> None:
    bar = "".join(f"\r{n}%|██  | {n}/100 [00:01<00:02]" for n in range(100))
    json = '{"level": "error", "message": "RuntimeError: ' + DDP.replace("\n", "\\n") + '"}'
    report = scanned(f"{bar}\rRuntimeError: {LEAF}\n{json}\n")
    assert summary(report) == [("leaf-inplace", 1, 1), ("ddp-prior-iteration-unused", 2, 1)]


def test_a_terminal_broke_the_lines() -> None:
    broken = VERSION.replace(" gradient", "\ngradient").replace(" [torch", "\n[torch")
    report = scanned(f"x\nRuntimeError: {broken}\n")
    assert summary(report) == [("inplace-version-mismatch", 2, 1)]
    assert report.found[0].match.captures["shape"] == "[2, 2]"


def test_the_line_before_decides() -> None:
    none = "AttributeError: 'NoneType' object has no attribute 'data'\n"
    assert summary(scanned(f"    x = node.data\n{none}" * 3)) == []
    assert summary(scanned(f"    x = node.data\n{none}    w.grad.data.zero_()\n{none}")) == [
        ("grad-none-attribute", 4, 1)
    ]


def test_several_on_one_line() -> None:
    report = scanned(f"failed: {LEAF} then {NONLEAF}\n")
    assert [s[0] for s in summary(report)] == ["leaf-inplace", "optimizer-nonleaf"]


@pytest.mark.parametrize("text", ["", "\n", "nothing here\n" * 3, "\x00\xff" * 100])
def test_nothing(text: str) -> None:
    assert scanned(text).found == []


def test_one_endless_line() -> None:
    report = scanned("x" * 3 * BLOCK + f" RuntimeError: {LEAF} " + "y" * BLOCK)
    assert summary(report) == [("leaf-inplace", 1, 1)]
    assert report.lines == 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_blocks_may_end_anywhere(data: st.DataObject) -> None:
    pieces = data.draw(st.lists(st.sampled_from([LEAF, VERSION, DDP, "x" * 50, ""]), max_size=9))
    text = "\n".join(pieces).encode()
    scanner, position = Scanner(), 0
    while position < len(text):
        step = data.draw(st.integers(1, len(text)))
        scanner.feed(text[position : position + step])
        position += step
    assert summary(scanner.close()) == summary(scanned(text))


@given(st.binary(max_size=500))
def test_any_bytes(data: bytes) -> None:
    scanned(data)


def test_a_block_border_within_a_message() -> None:
    for shift in (5, 60, 200, len(VERSION) + 3):
        text = b"." * (BLOCK - shift - 1) + b"\n" + VERSION.encode() + b"\n" + b"z\n" * 9000
        assert summary(scanned(text)) == [("inplace-version-mismatch", 2, 1)]


def blocks(size: int) -> Iterator[bytes]:
    """A training log with a failure now and then, made as it is read."""
    choose = random.Random(7)
    error = f"[rank1]: RuntimeError: {VERSION}\n".encode()
    while size > 0:
        lines = (
            f"2026-01-02 03:04:{n % 60:02d} [rank{n % 8}] INFO step {n} loss={choose.random():.4f} "
            f"grad_norm={choose.random():.3f} lr=1e-4 saved checkpoint {n}\n"
            for n in range(8000)
        )
        block = "".join(lines).encode() + error
        yield block * 10
        size -= len(block) * 10


class Stream(io.RawIOBase):
    """A binary stream over blocks, none of which is kept."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._rest, self.size = parts, b"", 0

    def read(self, size: int = -1) -> bytes:
        if not self._rest:
            self._rest = next(self._parts, b"")
        part, self._rest = self._rest[:size], self._rest[size:]
        self.size += len(part)
        return part


def test_a_hundred_megabytes_in_bounded_memory() -> None:
    stream = Stream(blocks(100_000_000))
    tracemalloc.start()
    try:
        report = scan(stream)  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert stream.size >= 100_000_000 and report.size == stream.size
    assert [(f.match.pattern, f.line) for f in report.found] == [("inplace-version-mismatch", 8001)]
    assert report.found[0].count == report.lines // 8001
    assert peak < 40_000_000  # ten megabytes are the test's own block, twice


def test_speed() -> None:
    """Some thirty megabytes a second of CPU time; less where others use the same core."""
    block = next(blocks(1))
    best = min(_seconds(block) for _ in range(3))
    assert len(block) / best > 12e6


def _seconds(block: bytes) -> float:
    start = time.process_time()
    scan(io.BytesIO(block))
    return time.process_time() - start


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(TRACEBACK, "utf-8")
    assert summary(scan_file(path)) == [("optimizer-nonleaf", 6, 1)]
