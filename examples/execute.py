"""Executes the example notebooks in a real kernel and writes their outputs into them.

usage: python examples/execute.py [NOTEBOOK ...]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
SECONDS = 300

#: Where packages and kernels keep their files is no matter of the reader's.
_PACKAGES = re.compile(r"(?:~|\b[A-Z]:)?[/\\][\w.~/\\+ -]*[/\\](?=(?:site|dist)-packages[/\\])")
_KERNEL = re.compile(r"(?:\b[A-Z]:)?[/\\][\w.~/\\+ -]*[/\\]ipykernel_\d+[/\\]\d+\.py")


def notebooks() -> list[Path]:
    """The example notebooks."""
    return sorted(HERE.glob("*.ipynb"))


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook as it looks after "run all"; cells that fail do not stop it."""
    book = nbformat.read(path, as_version=4)
    client = NotebookClient(book, allow_errors=True, timeout=SECONDS, record_timing=False)
    # What the kernel itself logs on starting is of no interest here.
    client.execute(stderr=subprocess.DEVNULL)
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            _tidy(output)
    book.metadata["language_info"] = {"name": "python"}
    return book


def _tidy(output: nbformat.NotebookNode) -> None:
    """Without paths of the machine that executed it."""
    if output.output_type == "stream":
        output.text = _without_paths(output.text)
    elif output.output_type == "error":
        output.traceback = [_without_paths(line) for line in output.traceback]


def _without_paths(text: str) -> str:
    return _KERNEL.sub("<cell>", _PACKAGES.sub("", text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, help="all examples where none is named")
    for path in parser.parse_args().notebooks or notebooks():
        nbformat.write(executed(path), path)
        print(path, file=sys.stderr)


if __name__ == "__main__":
    main()
