"""Makes the README's pictures: runs a notebook in a real JupyterLab and photographs its outputs.

usage: python docs/picture.py        (needs the extra "test", and Chromium)

Writes docs/report-light.png, docs/graph-light.png, and both for the dark theme.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
import torch
from playwright.sync_api import Page

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "frontend"))
import lab  # noqa: E402  -- the browser and the server of the front-end tests

SETUP = """%load_ext autograd_explain
%config AutogradExplain.language = 'en'
import torch
from torch import nn
torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
x = torch.randn(16, 4)"""
FAILS = """%%autograd_check
hidden = torch.tanh(encoder(x))
score = head(hidden)
hidden += 0.1  # shift the activations a little
loss = score.square().mean() + hidden.abs().mean()
loss.backward()"""
MODEL = """class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, h):
        return h + self.down(torch.relu(self.up(self.norm(h))))
encoder, blocks = nn.Linear(4, 8), nn.ModuleList(Block(8) for _ in range(48))
hidden = encoder(x)
for block in blocks:
    hidden = block(hidden)
loss = head(hidden).square().mean()"""
GRAPH = "%autograd_graph loss"
CELLS = (SETUP, FAILS, MODEL, GRAPH)
PICTURES = {"report": CELLS.index(FAILS), "graph": CELLS.index(GRAPH)}
#: What is not part of a cell.
_FOLDER = """prefix => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    walker.currentNode.textContent = walker.currentNode.textContent.replaceAll(prefix, '');
  }
}"""
_HIDDEN = """.jp-InputPrompt, .jp-OutputPrompt, .jp-Collapser, .jp-cell-toolbar {
  visibility: hidden
}"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, lab.browser() as browser:
        books, home = Path(folder, "books"), Path(folder, "home")
        for made in (books, home):
            made.mkdir()
        cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
        book = nbformat.v4.new_notebook(cells=cells)
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
        with lab.jupyter_lab(books, home) as running:
            for theme in ("light", "dark"):
                nbformat.write(book, books / f"{theme}.ipynb")
                page = browser.new_page(
                    viewport={"width": 1000, "height": 1600}, device_scale_factor=1.25
                )
                running.open(page, f"{theme}.ipynb", theme)
                photograph(running, page, theme)
                page.close()


def photograph(running: lab.Lab, page: Page, theme: str) -> None:
    for number in range(len(CELLS)):
        running.run(page, number)
    reports = page.locator("section.axg")
    reports.nth(1).wait_for(timeout=120_000)
    page.add_style_tag(content=_HIDDEN)
    page.evaluate(_FOLDER, f"{Path(torch.__file__).parents[1]}/")  # it is another on every machine
    page.evaluate("document.activeElement.blur()")
    for name, number in PICTURES.items():
        cell = page.locator(".jp-CodeCell").nth(number)
        cell.screenshot(path=HERE / f"{name}-{theme}.png")


if __name__ == "__main__":
    main()
