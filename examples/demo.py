"""Runs a failing notebook in a real kernel and shows in the terminal what its user sees.

usage: python examples/demo.py [NOTEBOOK] [--html FILE]
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
LONGEST = 45  #: lines shown of one output: the story of a cause is longer than a screen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebook", nargs="?", type=Path, default=HERE / "quick_start.ipynb")
    parser.add_argument("--html", type=Path, help="write the explanations as HTML to this file")
    arguments = parser.parse_args()
    pages = []
    for cell in executed(nbformat.read(arguments.notebook, as_version=4)):
        print(shown(cell, arguments.notebook.name), flush=True)
        pages += [o.data["text/html"] for o in outputs(cell) if "text/html" in o.get("data", {})]
    if arguments.html:
        arguments.html.write_text("\n".join(pages), encoding="utf-8")


def executed(book: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    """The cells one by one, each as soon as the kernel is done with it."""
    client = NotebookClient(book, allow_errors=True, timeout=300)
    # What the kernel itself logs on starting is of no interest here.
    with client.setup_kernel(stderr=subprocess.DEVNULL):
        for number, cell in enumerate(book.cells):
            yield client.execute_cell(cell, number) if cell.cell_type == "code" else cell


def outputs(cell: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return list(cell.get("outputs", ()))


def shown(cell: nbformat.NotebookNode, notebook: str) -> str:
    """A cell as a terminal shows it."""
    if cell.cell_type != "code":
        return f"\n{cell.source}\n"
    source = "\n".join(f"    {line}".rstrip() for line in cell.source.split("\n"))
    texts = [cut(text_of(output), notebook) for output in outputs(cell)]
    return "\n".join([f"In [{cell.execution_count}]:", source, *texts])


def text_of(output: nbformat.NotebookNode) -> str:
    """What a terminal would show of an output; of a traceback its last line."""
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue.splitlines()[0]}"
    if output.output_type == "stream":
        return str(output.text).rstrip("\n")
    return str(output.data.get("text/plain", ""))


def cut(text: str, notebook: str) -> str:
    lines = text.split("\n")
    if len(lines) <= LONGEST:
        return text
    rest = len(lines) - LONGEST // 2
    return "\n".join([*lines[: LONGEST // 2], f"… {rest} more lines: see {notebook}"])


if __name__ == "__main__":
    main()
