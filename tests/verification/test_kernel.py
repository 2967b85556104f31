"""Checkpoints inside a real kernel: its sockets, threads and event loop stay its own."""

import nbformat
import pytest
from nbclient import NotebookClient

SETUP = """
import os, sys, threading, torch
from pathlib import Path
from IPython import get_ipython
from autograd_explain.model import Edit, Kind
from autograd_explain.program import Program, Source
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.verification import Checkpoint, Request, reference_for, verify

shell, state = get_ipython(), {"sources": []}

def children():
    found = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = status.read_text().rsplit(")", 1)[1].split()[1]
        except OSError:  # it has ended meanwhile
            continue
        found += parent == str(os.getpid())
    return found

def before(info):
    state["checkpoint"] = Checkpoint.take(shell.user_ns)

def after(result):
    error, text = result.error_in_exec, result.info.raw_cell
    number = len(state["sources"]) + 1
    python = shell.transform_cell(text)
    state["sources"].append(Source(number, None, text, python, f"<cell {number}>"))
    if isinstance(error, RuntimeError):
        new = text.replace("y.mul_(2)", "y = y.mul(2)")
        request = Request(Program(state["sources"]), number, str(error), Kind.ERROR,
                          reference_for(Kind.ERROR, str(error)), state["checkpoint"])
        state["rewrites"] = verify([Proposal("fix", (Edit(number, None, text, new),))], request)
    if state.get("checkpoint"):
        state["checkpoint"].discard()

shell.events.register("pre_run_cell", before)
shell.events.register("post_run_cell", after)
"""
FAILING = """
import torch
from IPython.display import display, HTML
w = torch.ones(3, requires_grad=True)
{extra}
y = w.exp()
y.mul_(2)
y.sum().backward()
print("only a replay gets here")
display(HTML("<b>only a replay gets here</b>"))
get_ipython().display_pub.publish({{"text/plain": "only a replay"}})
"""
SHOW = """
print(state["rewrites"][0].outcome.value, dict(state["rewrites"][0].reason.values).get("what", ""))
print(children())
"""


def run(*cells: str) -> list[str]:
    """The text that each cell printed; an error shows as its name."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    NotebookClient(notebook, timeout=120, allow_errors=True, kernel_name="python3").execute()
    shown = []
    for cell in notebook.cells:
        outputs = [o.get("text", o.get("ename", "?" + o.output_type)) for o in cell.outputs]
        shown.append("".join(outputs))
    return shown


@pytest.mark.parametrize("extra", ["", "import asyncio\nawait asyncio.sleep(0)"])
def test_a_rewrite_is_verified_in_a_kernel_and_the_kernel_goes_on(extra):
    failing = FAILING.format(extra=extra)
    shown = run(SETUP, failing, SHOW, failing, SHOW, "input_is = 1\nprint(input_is + 1)")
    assert shown[1] == shown[3] == "RuntimeError", shown
    # One child: the checkpoint of the very cell that counts.
    assert shown[2] == shown[4] == "verified \n1\n", shown
    assert shown[5] == "2\n"
