"""Makes the README's picture: runs a failing cell in a real kernel and photographs its report.

usage: python docs/picture.py        (needs the extras "demo" and "test", and Chromium)

Writes docs/report-light.png and docs/report-dark.png.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from playwright.sync_api import sync_playwright

from autograd_explain.docs.code import highlighted, style

HERE = Path(__file__).parent
SETUP = """%load_ext autograd_explain
%config AutogradExplain.language = 'en'
import torch
from torch import nn
torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
x = torch.randn(16, 4)"""
CELL = """%%autograd_check
hidden = torch.tanh(encoder(x))
hidden += 0.1  # shift the activations a little
loss = head(hidden).square().mean()
loss.backward()"""
PAGE = """<!doctype html><meta charset="utf-8"><style>{style}
html{{--jp-content-font-color1:{ink};--jp-content-font-color2:{faint};--jp-border-color2:{rule}}}
body{{margin:0;padding:14px;width:760px;background:{paper};color:{ink};
font:14px system-ui,sans-serif}}
.cell{{display:grid;grid-template-columns:4.4em 1fr;align-items:start;gap:.2em .4em}}
.cell>span{{color:{faint};font:13px monospace;padding-top:.75em}}
pre{{margin:0 0 .5em;font:13px/1.5 Menlo,Consolas,"DejaVu Sans Mono",monospace}}
.highlight pre{{background:{tint};border:1px solid {rule};padding:.6em .8em}}
.error{{white-space:pre-wrap;background:{red};padding:.5em .8em}}</style>
<div class="cell"><span>In [2]:</span>{code}<span></span><pre class="error">{error}</pre>
<span></span>{report}</div>"""
THEMES = {
    "light": {
        "ink": "#1b1f24", "faint": "#59636e", "rule": "#d5d9de", "paper": "#ffffff",
        "tint": "#f6f7f9", "red": "#fdecec",
    },
    "dark": {
        "ink": "#e3e6ea", "faint": "#a2abb5", "rule": "#3a4149", "paper": "#111418",
        "tint": "#1a1e23", "red": "#3a1a1c",
    },
}  # fmt: skip


def main() -> None:
    error, report = run()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for theme, colours in THEMES.items():
            page = browser.new_page(
                viewport={"width": 790, "height": 200},
                device_scale_factor=1.25,
                color_scheme="dark" if theme == "dark" else "light",
            )
            values = {"style": style(), "code": highlighted(CELL), "error": error}
            page.set_content(PAGE.format(**values, report=report, **colours))
            page.screenshot(path=HERE / f"report-{theme}.png", full_page=True)
        browser.close()


def run() -> tuple[str, str]:
    """What the kernel answers: the error's last line, shortened, and the report's HTML."""
    cells = [nbformat.v4.new_code_cell(source) for source in (SETUP, CELL)]
    book = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(book, allow_errors=True, timeout=300).execute()
    error, report = book.cells[1].outputs
    return f"{error.ename}: {error.evalue.partition(' Hint:')[0]}", report.data["text/html"]


if __name__ == "__main__":
    main()
