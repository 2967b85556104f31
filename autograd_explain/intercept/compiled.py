"""Which cell a code object was compiled from, where its file name does not tell.

`%%time` compiles every body as `<timed exec>`, other cell magics use `<string>` or names of their
own.  A claim about a line needs more: the code object itself must be what the text compiles to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from types import CodeType, FrameType

from ..incident import LiveFrame
from ..program import Source


def settle(
    known: Sequence[Source], possible: Sequence[Source], frames: Iterable[LiveFrame]
) -> list[Source]:
    """The known sources, each made-up file name left to the one source that fits the frames.

    `possible` are bodies whose file name is unknown; one is added where the frames prove it.
    """
    found = list(known)
    by_name: dict[str, list[FrameType]] = {}
    for live in frames:
        if live.filename.startswith("<") and not live.filename.startswith("<ipython-input"):
            by_name.setdefault(live.filename, []).append(live.frame)
    for name, here in by_name.items():
        sharing = [s for s in found if s.filename == name]
        fitting = [s for s in sharing if all(fits(f, s) for f in here)]
        fitting += [s for s in possible if all(fits(f, s, whole=True) for f in here)]
        found = [s if s.filename != name else replace(s, filename="") for s in found]
        if fitting:
            found.append(replace(fitting[-1], filename=name))
    return found


def fits(frame: FrameType, source: Source, *, whole: bool = False) -> bool:
    """Whether this source compiles to the frame's code.

    %%time cuts a module in two: unless it is known to have run as a `whole`, only the names that
    a module's code uses can be compared.
    """
    code = frame.f_code
    codes = list(code_objects(source))
    if not codes:
        return False
    if frame.f_locals is frame.f_globals:
        module = codes[0]
        return code.co_code == module.co_code or (
            not whole and set(code.co_names) <= set(module.co_names)
        )
    return any(
        c.co_name == code.co_name
        and c.co_firstlineno == code.co_firstlineno
        and c.co_code == code.co_code
        for c in codes
    )


def code_objects(source: Source) -> Iterator[CodeType]:
    """The module's code object and every one inside it; nothing where it does not compile."""
    try:
        pending = [compile(source.python, source.filename or "<cell>", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError):
        return
    while pending:
        code = pending.pop()
        yield code
        pending.extend(c for c in code.co_consts if isinstance(c, CodeType))
