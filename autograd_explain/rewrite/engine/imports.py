"""Under which names the program knows torch and its modules."""

from __future__ import annotations

from dataclasses import dataclass

from ...model import Place
from ...program import Program, Source
from ...program_index import index_of


@dataclass(frozen=True)
class Imports:
    """Local name -> full name, for everything imported where a place can see it.

    Cells share one namespace, so every cell's imports count for every cell; a file sees its own.
    """

    names: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, program: Program, source: Source) -> Imports:
        others = (s for s in index_of(program).namespace(source) if s is not source)
        return cls(tuple(pair for s in (*others, source) for pair in s.imports))

    def full(self, path: str | None) -> str:
        """`F.relu` -> `torch.nn.functional.relu`; "" for what was not imported."""
        if path is None:
            return ""
        first, dot, rest = path.partition(".")
        for local, full in reversed(self.names):
            if local == first:
                return full + dot + rest
        return ""

    def local(self, full: str) -> str | None:
        """How to write a full name here: `torch.nn.Parameter` -> `nn.Parameter`; None: not at all.

        The last import of the same thing wins; the longest imported prefix makes the shortest name.
        """
        best: tuple[int, str] | None = None
        for local, imported in self.names:
            if full == imported or full.startswith(imported + "."):
                if self.full(local) != imported:
                    continue  # bound to something else since
                if best is None or len(imported) >= best[0]:
                    best = (len(imported), local + full[len(imported) :])
        return None if best is None else best[1]


def imports_at(program: Program, place: Place | None) -> Imports:
    source = program.source_at(place)
    return Imports(()) if source is None else Imports.of(program, source)


def torch_at(program: Program, place: Place | None) -> str | None:
    """The name torch is imported under (`torch`, `th`), or None."""
    found = imports_at(program, place).local("torch")
    return found if found is not None and found.isidentifier() else None
