"""In a real kernel, through the messages that front ends and nbclient see."""

import os
import re
import time
from itertools import groupby

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager, start_new_kernel
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from autograd_explain.render.report import MIMETYPE

LEAF = "import torch; w = torch.ones(2, requires_grad=True)"
ENVIRONMENT = {**os.environ, "AUTOGRAD_EXPLAIN_LANG": "en"}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Kernel:
    """A running kernel; `run` gives a cell's reply and its outputs in order."""

    def __init__(self, client):
        self.client = client

    def run(self, code, **options):
        # ipykernel 6 aborts what arrives shortly after a failed cell, unless that cell said not to.
        options.setdefault("stop_on_error", False)
        outputs = []
        reply = self.client.execute_interactive(
            code, output_hook=outputs.append, timeout=60, **options
        )
        kept = [m for m in outputs if m["msg_type"] not in ("status", "execute_input")]
        return reply["content"], [(m["msg_type"], m["content"]) for m in kept]


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_new_kernel(env=ENVIRONMENT)
    made = Kernel(client)
    made.manager = manager
    made.run(f"%load_ext autograd_explain\n{LEAF}")
    yield made
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def traceback_of(content):
    return COLOUR.sub("", "\n".join(content["traceback"]))


CELLS = {
    "plain": "w += 1",
    "await": "import asyncio\nawait asyncio.sleep(0.01)\nw += 1",
    "check": "%%autograd_check --no-verify\nw += 1",
    "check, await": "%%autograd_check\nimport asyncio\nawait asyncio.sleep(0.01)\nw += 1",
}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_an_error_output_then_one_display(kernel, cell):
    reply, outputs = kernel.run(cell)
    assert (reply["status"], reply["ename"]) == ("error", "RuntimeError")
    # What updates the display in its place leaves a notebook with two outputs.
    kinds = [kind for kind, _ in outputs if kind != "update_display_data"]
    assert kinds == ["error", "display_data"]
    error, display = (content for _, content in outputs[:2])
    assert error["evalue"].startswith("a leaf Variable that requires grad")
    shown = traceback_of(error)
    assert shown.count("Traceback (most recent call last)") == 1
    assert "autograd_explain" not in shown.replace("run_line_magic('autograd_check'", "")
    line = cell.count("\n") + 1
    assert f"line {line}" in shown or f"----> {line}" in shown
    assert set(display["data"]) == {"text/plain", "text/html", MIMETYPE}
    assert display["data"][MIMETYPE]["id"] == "leaf_written"
    assert f"] {line} │ w += 1" in display["data"]["text/plain"]
    assert "<script" not in display["data"]["text/html"]


def test_the_last_expression_is_the_result(kernel):
    reply, outputs = kernel.run("%%autograd_check --no-verify\nw.detach() * 2")
    assert reply["status"] == "ok"
    kinds = [kind for kind, _ in outputs]
    assert kinds == ["execute_result", "stream"]
    assert outputs[0][1]["data"]["text/plain"] == "tensor([2., 2.])"
    assert "nothing wrong" in outputs[1][1]["text"]


def test_a_good_cell_shows_nothing(kernel):
    reply, outputs = kernel.run("y = (w * 2).sum()")
    assert (reply["status"], outputs) == ("ok", [])


def test_silent_requests_are_left_alone(kernel):
    reply, outputs = kernel.run("w += 1", silent=True)
    assert reply["status"] == "error"
    assert [kind for kind, _ in outputs] in ([], ["error"])


def test_tb_and_debug_work_after_an_explanation(kernel):
    kernel.run("w += 1")
    _, outputs = kernel.run("%tb")
    assert any("leaf Variable" in str(content) for _, content in outputs)
    _, outputs = kernel.run("import sys; print(type(sys.last_value).__name__, sys.last_value.args)")
    assert "RuntimeError" in outputs[0][1]["text"]


def test_the_rewrite_goes_into_the_next_cell(kernel):
    kernel.run("x = 1\nw += 1")
    reply, _ = kernel.run("%autograd_fix")
    (payload,) = reply["payload"]
    assert payload["source"] == "set_next_input"
    assert payload["text"].startswith("x = 1\n") and payload["text"] != "x = 1\nw += 1"


def test_completion_and_help(kernel):
    message = kernel.client.complete("%%autograd_", reply=True, timeout=30)
    assert "%%autograd_check" in message["content"]["matches"]
    reply, _ = kernel.run("%autograd_check?")
    assert "--no-verify" in reply["payload"][0]["data"]["text/plain"]


def test_interrupting_a_watched_cell(kernel):
    if os.name == "nt":
        pytest.skip("signals")
    # Short sleeps: a signal that comes between Python's look at it and the system call does not
    # end a sleep, but is seen after it.
    sleeps = "import time\nfor _ in range(300):\n    time.sleep(0.1)"
    code = f"%%autograd_check --no-verify\nprint('on', flush=True)\n{sleeps}"
    outputs = []

    def hook(message):
        outputs.append(message)
        if message["msg_type"] == "stream" and "on" in message["content"]["text"]:
            kernel.manager.interrupt_kernel()

    start = time.monotonic()
    reply = kernel.client.execute_interactive(code, output_hook=hook, timeout=60)["content"]
    assert time.monotonic() - start < 20
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    assert [m["msg_type"] for m in outputs].count("error") == 1
    # ipykernel 6 turns away what comes while it still clears the queue.
    replies = (kernel.run("1 + 1")[0]["status"] for _ in range(10))
    assert next(status for status in replies if status != "aborted") == "ok"


def test_two_equal_cells_share_a_file_name(kernel):
    first, _ = kernel.run("def f(t):\n    t += 1")
    kernel.run("def f(t):\n    t += 1")
    _, outputs = kernel.run("f(w)")
    shown = outputs[-1][1]["data"]["text/plain"]
    assert f"In[{first['execution_count'] + 1}] 2 │" in shown


def notebook(*cells):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])


@pytest.fixture(scope="module")
def own_kernel():
    """For nbclient, one for all notebooks."""
    manager = AsyncKernelManager(kernel_name="python3")
    run_sync(manager.start_kernel)(env=ENVIRONMENT)
    yield manager
    run_sync(manager.shutdown_kernel)(now=True)


@pytest.mark.parametrize("head", ["", "%%autograd_check --no-verify\n"])
def test_nbclient_stops_at_the_failing_cell(own_kernel, head):
    book = notebook(f"%load_ext autograd_explain\n{LEAF}", f"{head}w += 1", "late = 1")
    client = NotebookClient(book, timeout=60, km=own_kernel)
    with pytest.raises(CellExecutionError, match="a leaf Variable"):
        client.execute()
    client.kc.stop_channels()
    kinds = [o.output_type for o in book.cells[1].outputs]
    assert kinds == ["error", "display_data"]
    assert book.cells[2].execution_count is None
    nbformat.validate(book)


def test_the_panel_stands_at_once_and_is_updated_in_place(kernel):
    """Before its rewrites are tried; a saved notebook holds it once."""
    outputs = kernel.run("%%autograd_check\nh = w.exp()\nh += 1\nh.sum().backward()")[1]
    kinds = [kind for kind, _ in outputs]
    assert kinds[:2] == ["error", "display_data"]
    assert set(kinds[2:]) == {"update_display_data"}
    assert len({content["transient"]["display_id"] for _, content in outputs[1:]}) == 1
    first, last = (outputs[n][1]["data"]["text/plain"] for n in (1, -1))
    assert "being tried" in first and "`h` was overwritten" in first
    assert "✓ verified" in last and "being tried" not in last


def test_an_interrupted_trial_leaves_no_promise(kernel):
    slow = "%%autograd_check\nimport time\ntime.sleep(3)\nh = w.exp()\nh += 1\nh.sum().backward()"
    seen = []

    def hook(message):
        seen.append(message)
        if message["msg_type"] == "display_data":
            kernel.manager.interrupt_kernel()

    kernel.client.execute_interactive(slow, output_hook=hook, timeout=60, stop_on_error=False)
    texts = [m["content"]["data"]["text/plain"] for m in seen if "data" in m["content"]]
    assert "being tried" in texts[0] and "being tried" not in texts[-1]
    assert "interrupted" in texts[-1]
    assert kernel.run("1 + 1")[0]["status"] == "ok"


CALLBACK = """
import ipywidgets
button, slider, out = ipywidgets.Button(), ipywidgets.IntSlider(), ipywidgets.Output()
def step(*_):
    h = w.exp()
    h.mul_(2)
    h.sum().backward()
button.on_click(step)
print(button.model_id)
"""


@pytest.fixture
def clicked(kernel):
    """What a front end gets when a button of the notebook is clicked, between two cells."""
    pytest.importorskip("ipywidgets")
    outputs = kernel.run(CALLBACK)[1]
    model = next(c["text"].strip() for kind, c in outputs if kind == "stream")

    def click():
        client = kernel.client
        content = {"comm_id": model, "data": {"method": "custom", "content": {"event": "click"}}}
        message = client.session.msg("comm_msg", content)
        client.shell_channel.send(message)
        seen = []
        while not seen or seen[-1]["content"].get("execution_state") != "idle":
            got = client.get_iopub_msg(timeout=30)
            if got["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                seen.append(got)
        return [(m["msg_type"], m["content"]) for m in seen if m["msg_type"] != "status"]

    return click


def test_a_widgets_callback_has_its_report_under_its_traceback(kernel, clicked):
    first, second = clicked(), clicked()
    assert [kind for kind, _ in first] == [kind for kind, _ in second] == ["error", "display_data"]
    assert "`h` was overwritten" in first[1][1]["data"]["text/plain"]
    assert "h.mul_(2)" in first[1][1]["data"]["text/html"]
    again = second[1][1]["data"]
    assert "the same as before, 2nd time" in again["text/plain"].lower()
    assert "<details" in again["text/html"] and "h.mul_(2)" in again["text/html"]


def test_what_an_output_widget_catches_is_explained_in_it(kernel, clicked):
    """It takes what is displayed while it is open, so the report has to come before it closes."""
    outputs = kernel.run(
        "with out:\n    slider.observe(step, 'value')\n    step()\nprint('after')"
    )[1]
    # A kernel may send a printed line in two parts.
    kinds = [k for k, _ in groupby(kind for kind, _ in outputs if not kind.startswith("comm"))]
    assert kinds == ["error", "display_data", "stream"]
    kinds = [kind for kind, _ in kernel.run("slider.value = 3")[1]]
    assert kinds[-2:] == ["error", "display_data"]
