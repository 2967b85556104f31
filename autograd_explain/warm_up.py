"""What the first report needs, in steps that a user hardly feels."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

_MODULES = (
    "executing",
    "yaml",
    "frontmatter",
    "libcst",
    "libcst.native",
    "markdown_it",
    "jinja2",
    "pygments.lexers.python",
    "rich.console",
    "autograd_explain.inspect.scene",
    "autograd_explain.inspect.shadow",
    "autograd_explain.pipeline",
    "autograd_explain.loss_path",
    "autograd_explain.no_tensor",
    "autograd_explain.render.explanation",
    "autograd_explain.render.text",
    "autograd_explain.render.report",
    "autograd_explain.repair",
    "autograd_explain.repair.candidates",
    "autograd_explain.render.repeated",
    # A failed cell is watched when it runs again.
    "autograd_explain.record.recording",
    "autograd_explain.record.detect.detectors",
)
_AT_ONCE = 5  #: causes; each takes some milliseconds


def steps() -> Iterator[None]:
    """Each `next` loads a little more; nothing else is done."""
    for name in _MODULES:
        import_module(name)
        yield
    from .knowledge.entry import entries

    for number, entry in enumerate(entries().values()):
        _ = entry.patterns, entry.propose
        if number % _AT_ONCE == 0:
            yield
    yield from _tables()


def _tables() -> Iterator[None]:
    """What is compiled once: the messages' patterns and the templates."""
    from rich.cells import cell_len

    from .match import match_message
    from .program import is_library
    from .render.html import environment, style
    from .render.texts import parser

    is_library("")
    cell_len("…")
    match_message("a message that no pattern fits: modified by an inplace operation")
    yield
    environment().get_template("explanation.html")
    yield
    style()
    parser()
