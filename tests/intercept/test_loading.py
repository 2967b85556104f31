"""`%load_ext` in a fresh interpreter: quick, silent, and nothing heavy comes with it."""

import json
import os
import subprocess
import sys

PROGRAM = """
import json, sys, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
before = set(sys.modules)
start = time.process_time()
shell.run_line_magic("load_ext", "autograd_explain")
seconds = time.process_time() - start
import autograd_explain
names = {name: getattr(autograd_explain, name) is not None for name in autograd_explain.__all__
         if name != "Explanation"}
shell.run_cell("1/0")
print(json.dumps([seconds, sorted(set(sys.modules) - before)]), file=sys.stderr)
"""
HEAVY = {"torch", "libcst", "rich", "jinja2", "markdown_it", "numpy", "frontmatter", "yaml"}


def fresh_load():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=os.environ
    )
    return done.stdout, *json.loads(done.stderr.splitlines()[-1])


def test_loading_is_quick_and_brings_nothing_heavy():
    runs = [fresh_load() for _ in range(3)]
    assert min(seconds for _, seconds, _ in runs) < 0.50
    output, _, modules = runs[0]
    assert not HEAVY.intersection(modules)
    # The failing cell was foreign, and torch was never there.
    assert "autograd_explain" not in output


def test_importing_brings_nothing_heavy():
    code = "import sys, autograd_explain; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY.intersection(done.stdout.split())
    assert "IPython" not in done.stdout.split()
