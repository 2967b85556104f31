"""A real JupyterLab or Notebook with a real Chromium in front of it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
)
_RUN = """async number => {
  const app = window.jupyterapp, panel = app.shell.currentWidget;
  await panel.sessionContext.ready;
  panel.content.activeCellIndex = number;
  panel.content.deselectAll();
  await app.commands.execute('notebook:run-cell');
}"""
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


def chromium() -> str | None:
    """The browser's path, or None: `AUTOGRAD_EXPLAIN_CHROMIUM`, else the first one found."""
    named = os.environ.get("AUTOGRAD_EXPLAIN_CHROMIUM")
    return named or next(filter(None, map(shutil.which, _NAMES)), None)


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            yield started
        finally:
            started.close()


@dataclass(frozen=True)
class Lab:
    """A running server: notebooks lie in `folder`."""

    url: str
    token: str
    folder: Path

    def open(self, page: Page, name: str, theme: str = "light") -> None:
        """Show a notebook; its outputs are untrusted unless it is run here."""
        self._set("themes", theme=_THEMES[theme])
        self._set("notification", fetchNews="false", checkForUpdates=False)
        page.goto(f"{self.url}/doc/tree/{name}?token={self.token}&reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
        wanted = f"body[data-jp-theme-light='{str(theme == 'light').lower()}']"
        page.wait_for_selector(wanted, state="attached")

    def run(self, page: Page, cell: int) -> None:
        """Run a cell of the notebook shown; what it raises is its output."""
        page.evaluate(_RUN, cell)

    def _set(self, plugin: str, **values: object) -> None:
        settings = json.dumps({"raw": json.dumps(values)}).encode()
        url = f"{self.url}/lab/api/settings/@jupyterlab/apputils-extension:{plugin}"
        headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(url, settings, headers, method="PUT")
        urllib.request.urlopen(request, timeout=30).close()


@contextlib.contextmanager
def jupyter_lab(folder: Path, home: Path, app: str = "jupyterlab") -> Iterator[Lab]:
    """A server of its own, with settings and state in `home`; gone afterwards."""
    token, port = secrets.token_hex(16), _free_port()
    where = {
        name: str(home / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    }
    where["JUPYTERLAB_SETTINGS_DIR"] = str(home / "settings")
    where["JUPYTERLAB_WORKSPACES_DIR"] = str(home / "workspaces")
    options = {
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "ServerApp.root_dir": str(folder),
        "LabApp.expose_app_in_browser": True,
        "JupyterNotebookApp.expose_app_in_browser": True,
        "IdentityProvider.token": token,
    }
    command = [sys.executable, "-m", app, *(f"--{k}={v}" for k, v in options.items())]
    with (home / "server.log").open("w") as log:
        server = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **where},
            start_new_session=True,
        )
        try:
            lab = Lab(f"http://127.0.0.1:{port}", token, folder)
            _wait(lab, server, home / "server.log")
            yield lab
        finally:
            _end(server)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait(lab: Lab, server: subprocess.Popen[bytes], log: Path, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(f"{lab.url}/api?token={lab.token}", timeout=5).close()
            return
        time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text('utf-8')[-4000:]}")


def _end(server: subprocess.Popen[bytes]) -> None:
    """The server shuts its kernels down when asked; its whole session goes in any case."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait(20)
