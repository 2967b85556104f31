"""Runs the quick-start notebook in a real kernel and shows what the user sees.

usage: python examples/demo.py [NOTEBOOK] [--html FILE]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebook", nargs="?", default=str(HERE / "quick_start.ipynb"))
    parser.add_argument("--html", help="write the HTML of the explanations to this file too")
    arguments = parser.parse_args()
    book = nbformat.read(arguments.notebook, as_version=4)
    NotebookClient(book, allow_errors=True, timeout=300).execute()
    pages = []
    for cell in book.cells:
        if cell.cell_type == "markdown":
            print(f"\n{cell.source}\n")
            continue
        print(
            f"In [{cell.execution_count}]:\n"
            + "\n".join(f"    {s}" for s in cell.source.split("\n"))
        )
        for output in cell.outputs:
            print(text_of(output))
            pages.append(output.get("data", {}).get("text/html", ""))
    if arguments.html:
        Path(arguments.html).write_text("\n".join(pages), encoding="utf-8")


def text_of(output: nbformat.NotebookNode) -> str:
    """What a terminal would show of an output; of a traceback its last line."""
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue.splitlines()[0]}"
    if output.output_type == "stream":
        return str(output.text)
    return str(output.data.get("text/plain", ""))


if __name__ == "__main__":
    main()
