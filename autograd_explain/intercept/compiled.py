"""Which cell a code object was compiled from, where its file name does not tell.

`%%time` compiles every body as `<timed exec>`, other cell magics use `<string>` or names of their
own.  A claim about a line needs more: the code object itself must be what the text compiles to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FrameType

from ..incident import LiveFrame
from ..program import Source

TIMEIT = "<magic-timeit>"
#: The names of IPython's own template around a timed body.
_TEMPLATE = frozenset({"_it", "_timer", "_i", "_t0", "_t1"})


@dataclass(frozen=True, eq=False)
class RenamedFrame(LiveFrame):
    """A frame whose file name several cells share, under a name that only its own cell has."""

    known_as: str = ""

    @property
    def filename(self) -> str:
        return self.known_as


def settle(
    known: Sequence[Source], possible: Sequence[Source], frames: Iterable[LiveFrame]
) -> tuple[list[Source], tuple[LiveFrame, ...]]:
    """The sources and the frames, each frame's file name being that of its own cell alone.

    `possible` are bodies whose file name is unknown; one is added where a frame proves it.  The
    innermost frame's cell keeps the shared name.
    """
    found = list(known)
    settled = list(frames)
    for name in {f.filename for f in settled if _is_made_up(f.filename)}:
        here = [i for i, f in enumerate(settled) if f.filename == name]
        sharing = [s for s in found if s.filename == name]
        owners = {i: _owner(settled[i].frame, [*possible, *sharing]) for i in here}
        first = owners[here[-1]]
        found = [s if s.filename != name else replace(s, filename="") for s in found]
        for i, owner in owners.items():
            known_as = name if owner is first else _alias(name, owner)
            settled[i] = _renamed(settled[i], known_as)
        for owner in filter(None, dict.fromkeys(reversed(owners.values()))):
            found.append(replace(owner, filename=name if owner is first else _alias(name, owner)))
    return found, tuple(settled)


def _renamed(live: LiveFrame, known_as: str) -> LiveFrame:
    return RenamedFrame(live.frame, live.line, live.lasti, known_as)


def _is_made_up(filename: str) -> bool:
    return filename.startswith("<") and not filename.startswith(("<ipython-input", "<frozen"))


def _owner(frame: FrameType, sources: Sequence[Source]) -> Source | None:
    return next((s for s in reversed(sources) if fits(frame, s)), None)


def _alias(name: str, owner: Source | None) -> str:
    return f"{name} of In[{'?' if owner is None else owner.cell}]"


def fits(frame: FrameType, source: Source) -> bool:
    """Whether this source compiles to the frame's code (equality leaves the file name out)."""
    code = frame.f_code
    if code.co_filename == TIMEIT and code.co_name == "inner":
        return _names(code) <= set().union(*map(_names, modules(source)))
    return any(code == known for known in code_objects(source))


def _names(code: CodeType) -> set[str]:
    return {*code.co_names, *code.co_varnames} - _TEMPLATE


def modules(source: Source) -> Iterator[CodeType]:
    """The source as one module, and as %%time compiles it: its last expression by itself."""
    name = source.filename or "<cell>"
    body = list(source.tree.body)
    last = body[-1] if body else None
    try:
        yield compile(source.python, name, "exec", dont_inherit=True)
        if isinstance(last, ast.Expr):
            yield compile(ast.Module(body[:-1], []), name, "exec", dont_inherit=True)
            yield compile(ast.Expression(last.value), name, "eval", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return


def code_objects(source: Source) -> Iterator[CodeType]:
    """Every code object of the source; nothing where it does not compile."""
    pending = list(modules(source))
    while pending:
        code = pending.pop()
        yield code
        pending.extend(c for c in code.co_consts if isinstance(c, CodeType))
