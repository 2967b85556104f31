"""`mcp`: messages and logs explained to assistants over the Model Context Protocol (stdio).

Needs the extra `[mcp]`.  The tools read; nothing is run.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Any

from ..search import lookup, scan_file
from ..search.causes import causes
from ..search.find import messages
from .exit import Exit
from .explain import log_dict
from .job import is_job, job_dict


def run(options: argparse.Namespace) -> int:
    """Serve until the client goes."""
    from . import language_for

    try:
        package = import_module("mcp.server.mcpserver")
    except ImportError:
        print("autograd-explain: mcp: pip install 'autograd_explain[mcp]'", file=sys.stderr)
        return Exit.USAGE
    language, folders = language_for(options), tuple(options.causes)

    def explain_message(text: str) -> dict[str, Any]:
        """Explain a PyTorch autograd error message, a whole traceback, or a question about
        autograd. `id` is null where nothing fits."""
        answer = lookup(text, language, folders)
        return {"id": None} if answer is None else answer.to_dict()

    def explain_log(path: str) -> dict[str, Any]:
        """Explain the autograd errors of a log file, of a report, or of a folder of torchrun's
        logs: causes, ranks, and the lines of the user's program."""
        if is_job([path]):
            return job_dict([path], folders, language)
        known = causes(folders)
        return log_dict(scan_file(path, messages(known)), path, known, language)

    server = package.MCPServer("autograd_explain")
    for tool in (explain_message, explain_log):
        server.tool()(tool)
    server.run()
    return Exit.FOUND
