"""What `get_ipython()` is inside a replay: harmless magics work, others are refused."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from .cells import Runner
from .sandbox import Sandbox

#: Line magics without a meaning for what is computed.
_IGNORED = {
    "alias_magic", "aimport", "autoawait", "autocall", "autoindent", "automagic", "autoreload",
    "autosave", "colors", "config", "debug", "dirs", "doctest_mode", "gui", "hist", "history",
    "load_ext", "logstart", "logstop", "lsmagic", "magic", "matplotlib", "page", "pdb", "pdoc",
    "pinfo", "pinfo2", "precision", "pprint", "psource", "pwd", "reload_ext", "subshell", "tb",
    "unload_ext", "watermark", "who", "who_ls", "whos", "xmode",
}  # fmt: skip
_SHOWN = {"html", "HTML", "javascript", "js", "latex", "markdown", "svg", "SVG"}
_TIMED = {"time", "timeit", "prun", "memit", "lprun", "mprun"}
_OWN = "autograd_"
_INSTALLERS = {"pip", "conda", "mamba", "micromamba", "uv"}
#: Commands that only show or install something: the session has done it, nothing depends on it.
_IDLE_COMMAND = re.compile(
    r"\s*(?:(?:\S*python\S*\s+-m\s+)?pip3?\s+install|(?:conda|mamba|uv\s+pip)\s+install|nvidia-smi"
    r"|ls|pwd|echo|date|whoami|uname|lscpu|free|df|cat|head|tail|wc)\b[^|;&<>`$]*\Z"
)


class ReplayShell:
    """The part of IPython's shell that cells use."""

    def __init__(self, runner: Runner, sandbox: Sandbox, files: Mapping[str, str]) -> None:
        self._runner = runner
        self._sandbox = sandbox
        self._files = files
        self.user_ns = runner.namespace
        self.user_global_ns = runner.namespace
        self.events = SimpleNamespace(register=_nothing, unregister=_nothing, trigger=_nothing)
        self.display_pub = SimpleNamespace(publish=_nothing, clear_output=_nothing)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._refuse(f"get_ipython().{name}")

    def run_line_magic(self, name: str, line: str, _stack_depth: int = 1) -> Any:
        if name in _IGNORED or name.startswith(_OWN):
            return None
        if name in _TIMED:
            return self._statement(line)
        if name in _INSTALLERS:
            return self.system(f"{name} {line}")
        handler = getattr(self, f"_magic_{name}", None)
        if handler is None:
            raise self._refuse(f"%{name}")
        return handler(line)

    def run_cell_magic(self, name: str, line: str, cell: str) -> Any:
        if name in _SHOWN:
            return None
        if name == "capture":
            self._captured(line)
        elif name in ("writefile", "file"):
            return self._written(line, cell)
        elif name in ("bash", "sh", "script", "system", "sx", "!", "cmd", "perl", "ruby", "python"):
            raise self._sandbox.refuse("needs_subprocess", f"%%{name}")
        elif name not in _TIMED and not name.startswith(_OWN):
            raise self._refuse(f"%%{name}")
        return self._statement(cell)

    def system(self, command: str) -> None:
        if not _IDLE_COMMAND.match(command):
            raise self._sandbox.refuse("needs_subprocess", command)

    def getoutput(self, command: str, split: bool = True, depth: int = 0) -> Any:
        raise self._sandbox.refuse("needs_subprocess", command)

    def run_cell(self, raw_cell: str, *args: Any, **kwargs: Any) -> Any:
        return SimpleNamespace(result=self._statement(raw_cell), success=True)

    def magic(self, line: str) -> Any:
        name, _, rest = line.lstrip("%").partition(" ")
        return self.run_line_magic(name, rest)

    def ev(self, expression: str) -> Any:
        return eval(expression, self.user_ns)

    def ex(self, statement: str) -> None:
        exec(statement, self.user_ns)

    def _statement(self, text: str) -> Any:
        # IPython's `%time -p stmt` and the like: options come first.
        body = re.sub(r"\A\s*(?:-\w+(?:\s+\d+)?\s+)*", "", text) if "\n" not in text else text
        cell = self._runner.cell
        return self._runner.execute(body, "<replay>" if cell is None else cell.filename)

    def _written(self, line: str, text: str) -> None:
        words = shlex.split(line)
        with open(words[-1], "a" if "-a" in words[:-1] else "w", encoding="utf-8") as file:
            file.write(text)

    def _captured(self, line: str) -> None:
        name = next((word for word in line.split() if not word.startswith("-")), None)
        if name is not None:
            self.user_ns[name] = SimpleNamespace(
                stdout="", stderr="", outputs=[], show=lambda: None
            )

    def _refuse(self, what: str) -> BaseException:
        return self._sandbox.refuse("not_replayable", what)

    def _magic_cd(self, line: str) -> None:
        os.chdir(os.path.expanduser(line.strip().strip("'\"") or "~"))

    def _magic_env(self, line: str) -> Any:
        name, found, value = line.partition("=")
        if not found:
            name, _, value = line.partition(" ")
        if not value:
            return os.environ.get(name.strip())
        os.environ[name.strip()] = value.strip()
        return None

    _magic_set_env = _magic_env

    def _magic_run(self, line: str) -> None:
        words = shlex.split(line)
        shared = words[:1] == ["-i"]
        words = words[shared:]
        if not words or words[0].startswith("-"):
            raise self._refuse("%run")
        path = os.path.abspath(os.path.expanduser(words[0]))
        path = path if path.endswith(".py") or os.path.exists(path) else path + ".py"
        sys.argv = [path, *words[1:]]
        space = self.user_ns if shared else {"__name__": "__main__", "__file__": path}
        Runner(space).execute(self._text_of(path), path)
        if not shared:
            self.user_ns.update({k: v for k, v in space.items() if not k.startswith("_")})

    def _text_of(self, path: str) -> str:
        if path in self._files:
            return self._files[path]
        with open(path, encoding="utf-8") as file:
            return file.read()


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def install(shell: ReplayShell) -> None:
    """Make every way to ask for the shell give this one."""

    def get_ipython() -> ReplayShell:
        return shell

    import builtins

    for name in ("IPython", "IPython.core.getipython", "IPython.core.interactiveshell"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "get_ipython"):
            module.get_ipython = get_ipython  # type: ignore[attr-defined]
    for name in ("IPython.display", "IPython.core.display", "IPython.core.display_functions"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "display"):
            module.display = _nothing  # type: ignore[attr-defined]
    for name, value in (("get_ipython", get_ipython), ("display", _nothing)):
        setattr(builtins, name, value)
        shell.user_ns[name] = value
