"""Other hosts than JupyterLab, by the variables that they set: VS Code, Colab, a bare page.

None of them tells its theme to `prefers-color-scheme`: with either answer all stays readable.
"""

from __future__ import annotations

import re

import pytest
from look import seen
from playwright.sync_api import Browser
from render.samples import SAMPLES

from autograd_explain.render.html import style

HOSTS = {
    "vscode-dark": "html{--vscode-editor-foreground:#d4d4d4;--vscode-descriptionForeground:#9d9d9d;"
    "--vscode-textLink-foreground:#4daafc}body{background:#1e1e1e;color:#d4d4d4}",
    "vscode-light": "html{--vscode-editor-foreground:#3b3b3b;"
    "--vscode-descriptionForeground:#616161;--vscode-textLink-foreground:#005fb8}body{background:#fff;color:#3b3b3b}",
    "colab-dark": "html{--colab-primary-text-color:#e3e3e3;--colab-secondary-text-color:#c0c0c0}"
    "body{background:#1e1e1e;color:#e3e3e3}",
    "bare-light": "body{background:#fff;color:#111}",
    "bare-dark": "body{background:#111;color:#eee}",
}


def test_the_style_does_not_ask_the_system() -> None:
    assert "prefers-color-scheme" not in style()
    assert not re.search(r"url\(|@import|@font-face", style())


@pytest.mark.one_in(2)
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable(browser: Browser, host: str, scheme: str) -> None:
    page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
    reports = "".join(SAMPLES[n]().with_detail("full").to_html() for n in ("overwritten", "silent"))
    page.set_content(f"<style>{HOSTS[host]}</style>{reports}")
    for report in page.locator("section.axg").all():
        texts = seen(report)
        assert len(texts) > 30
        assert [s for s in texts if s.contrast < 4.5 and s.text not in "●◆✗▸✓○"] == []
        assert [s for s in texts if s.contrast < 3] == []
    page.close()
