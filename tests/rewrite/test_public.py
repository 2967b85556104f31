"""The public face of the rewrites."""

from __future__ import annotations

import re
import subprocess
import sys

import autograd_explain.rewrite as rewrite


def test_every_name_is_there() -> None:
    assert sorted(rewrite._MODULE) == sorted(rewrite.__all__)
    for name in rewrite.__all__:
        assert getattr(rewrite, name) is not None


def test_the_docstring_lists_every_function() -> None:
    listed = set(re.findall(r"^    (\w+)\(", rewrite.__doc__ or "", re.M))
    functions = {n for n in rewrite.__all__ if n[0].islower()}
    assert listed == functions


def test_the_docstring_gives_the_arguments() -> None:
    import inspect

    for name, arguments in re.findall(r"^    (\w+)\((.*?)\)", rewrite.__doc__ or "", re.M):
        given = [re.split(r"[:=]", a)[0].strip(" *") for a in arguments.split(",")]
        real = [n for n in inspect.signature(getattr(rewrite, name)).parameters]
        assert [g for g in given if g] == real, name


def test_importing_costs_no_libcst() -> None:
    code = "import autograd_explain.rewrite.engine.proposal, sys; print('libcst' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
