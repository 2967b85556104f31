"""Magics in a replay: harmless ones work, others are refused with the reason."""

import pytest

from autograd_explain.model import Edit, Outcome
from autograd_explain.program import Program, Source
from autograd_explain.rewrite.engine.proposal import Proposal
from autograd_explain.verification import Reference, Request, verify

FAILING = """import torch
w = torch.ones(3, requires_grad=True)
y = w.exp()
y.mul_(2)
y.sum().backward()
"""


def tried(*cells):
    """Replay cells whose last one fails, its rewrite among them; from the start."""
    sources = [Source(i, None, t, t, f"<shell {i}>") for i, t in enumerate(cells, 1)]
    old = cells[-1]
    edit = Edit(len(cells), None, old, old.replace("y.mul_(2)", "y = y.mul(2)"))
    request = Request(
        Program(sources), len(cells), "", reference=Reference.SAVED_VALUES, seconds=30
    )
    (rewrite,) = verify([Proposal("fix", (edit,))], request, keep_all=True)
    return rewrite


@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline\n%config InlineBackend.figure_format = 'svg'\n%load_ext autoreload",
        "%time a = 1\nassert a == 1",
        "%%time\na = 2",
        "%%capture out\nprint(3)",
        "%%capture\n%%time\na = 2",
        "%env ABC=1\nimport os\nassert os.environ['ABC'] == '1'",
        "!pip install something",
        "%pip install -q something",
        "!nvidia-smi",
        "%%html\n<b>x</b>",
        "get_ipython().run_line_magic('matplotlib', 'inline')",
        "import asyncio\nawait asyncio.sleep(0)\na = 1",
        "display(1)\nfrom IPython.display import display\ndisplay(2)",
        "%%autograd_check\na = 1",
        "1 + 1\nassert True\n2",
        "%%writefile x.py\na = 1",
    ],
)
def test_harmless(cell):
    rewrite = tried(cell, FAILING)
    assert rewrite.outcome is Outcome.VERIFIED, rewrite.reason


@pytest.mark.parametrize(
    ("cell", "key"),
    [
        ("!touch x", "needs_subprocess"),
        ("files = !ls", "needs_subprocess"),
        ("!echo x > y", "needs_subprocess"),
        ("%%bash\necho x", "needs_subprocess"),
        ("%unknown_magic 1", "not_replayable"),
        ("%%unknown_magic\na = 1", "not_replayable"),
        ("get_ipython().kernel.shell", "not_replayable"),
    ],
)
def test_refused(cell, key):
    rewrite = tried(cell, FAILING)
    assert rewrite.outcome is Outcome.NOT_TRIED
    assert rewrite.reason.key == key


def test_the_failing_cell_may_have_magics_itself():
    assert tried("%%time\n" + FAILING).outcome is Outcome.VERIFIED
    assert tried("%matplotlib inline\n" + FAILING).outcome is Outcome.VERIFIED


def test_a_script_that_is_run(tmp_path):
    script = tmp_path / "helpers.py"
    script.write_text("def double(y):\n    y.mul_(2)\n    return y\n")
    cells = f"%run {script}", FAILING.replace("y.mul_(2)", "y = double(y)")
    sources = [Source(i, None, t, t, f"<shell {i}>") for i, t in enumerate(cells, 1)]
    text = script.read_text()
    edit = Edit(None, str(script), text, text.replace("y.mul_(2)", "y = y.mul(2)"))
    request = Request(Program(sources), 2, "", reference=Reference.SAVED_VALUES, seconds=30)
    (rewrite,) = verify([Proposal("fix", (edit,))], request, keep_all=True)
    assert rewrite.outcome is Outcome.VERIFIED
    assert script.read_text() == text
