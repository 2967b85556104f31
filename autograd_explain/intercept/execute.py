"""Running a cell's body from inside a cell magic, as IPython would have run it.

Only needed where `%%autograd_check` was not seen by the input transformer: called through an
alias or by other code.  The body is compiled with the shell's compiler and runs in the user's
namespace; its last expression is displayed; what it raises propagates, once.
"""

from __future__ import annotations

import ast
import inspect
from types import CodeType
from typing import Any

from IPython.core.error import UsageError

from .cells import Cells, blank_lines


def run_body(shell: Any, cells: Cells, body: str) -> None:
    """Execute `body`; line numbers fit the running cell as the user typed it."""
    __tracebackhide__ = True
    for code in _compiled(shell, cells, body):
        if code.co_flags & inspect.CO_COROUTINE:
            _await(shell, code)
        else:
            exec(code, shell.user_global_ns, shell.user_ns)


def _compiled(shell: Any, cells: Cells, body: str) -> list[CodeType]:
    """The statements and, to be displayed, the last expression."""
    run = cells.running
    before = blank_lines(body) + (0 if run is None else cells.lines_before(run, body))
    python = "\n" * before + shell.transform_cell(body)
    number = shell.execution_count if run is None else run.compile_number
    name = shell.compile.cache(python, number, raw_code=body)
    if run is not None:
        cells.add_part(run, python, name)
    tree = shell.transform_ast(shell.compile.ast_parse(python, filename=name))
    parts: list[tuple[ast.mod, str]] = [(tree, "exec")]
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        parts.append((ast.Interactive([tree.body.pop()]), "single"))
    with shell.compile.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT):
        return [shell.compile(part, name, mode) for part, mode in parts]


def _await(shell: Any, code: CodeType) -> None:
    __tracebackhide__ = True
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        shell.loop_runner(eval(code, shell.user_global_ns, shell.user_ns))
    else:
        raise UsageError("await works under %%autograd_check where it is a cell's first line")
