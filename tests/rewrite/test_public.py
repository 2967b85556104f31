"""The public face of the rewrites."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import autograd_explain.rewrite as rewrite


def test_the_docstring_gives_the_arguments() -> None:
    listed = dict(re.findall(r"^    (\w+)\((.*?)\)", rewrite.__doc__ or "", re.M))
    assert set(listed) == {name for name in rewrite.__all__ if name[0].islower()}
    for name, arguments in listed.items():
        given = [re.split(r"[:=]", a)[0].strip(" *") for a in arguments.split(",")]
        assert given == [*inspect.signature(getattr(rewrite, name)).parameters], name


def test_importing_costs_no_libcst() -> None:
    code = "import autograd_explain.rewrite, sys; print('libcst' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
