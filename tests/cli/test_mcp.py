"""The server for assistants, asked by the official package's own client."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from autograd_explain.cli import main

LEAF = "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation."


def test_without_the_extra_it_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    assert main(["mcp"]) == 2
    assert "pip install 'autograd_explain[mcp]'" in capsys.readouterr().err


async def _ask(calls: list[tuple[str, dict[str, str]]]) -> list[Any]:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(
        command=sys.executable, args=["-m", "autograd_explain", "mcp"], env=dict(os.environ)
    )
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        return [(await session.call_tool(*call)).structured_content for call in calls]


@pytest.mark.timeout(100)
def test_a_client_asks(tmp_path: Path) -> None:
    pytest.importorskip("mcp.server.mcpserver")
    log = tmp_path / "train.log"
    log.write_text(f"[rank3]: {LEAF}\n")
    answers = asyncio.run(
        _ask(
            [
                ("explain_message", {"text": LEAF}),
                ("explain_message", {"text": "CUDA out of memory"}),
                ("explain_log", {"path": str(log)}),
                ("explain_log", {"path": str(tmp_path)}),
            ]
        )
    )
    message, nothing, one, folder = answers
    assert message["id"] == "leaf_written" and nothing["id"] is None
    assert one["messages"][0]["entries"][0]["id"] == "leaf_written"
    assert folder["causes"][0]["ranks"] == [3]
