"""An object copied: `copy.deepcopy(net)` where one got a second name, `copy.copy(data)` where a
function keeps its results in what it is given."""

from __future__ import annotations

import ast
from itertools import chain

from ...model import Edits, Place
from ...program import Program, Source, is_text
from ..analysis.effects import used_names
from ..engine.imports import imports_at
from ..engine.tree import tree_of
from .spot import Spot
from .uncut import Patch, apply_patches, lines_before


def deep_copied(program: Program, place: Place | None, of: str = "({x})") -> Edits | None:
    """A copy of the expression at the place, or of the `{arguments}` of the call there; `import
    copy` comes along where it is missing."""
    function, patches = _function(program, place, "deepcopy")
    whole = Spot(program, place).with_code(f"{function}{of}")
    return apply_patches([*patches, *whole]) if function and whole else None


def argument_copied(program: Program, place: Place | None, name: str) -> Edits | None:
    """`data = copy.copy(data)` as the first line of the function around the place."""
    source = program.source_at(place)
    body = None if source is None or place is None else source.function_at(place)
    if source is None or place is None or body is None:
        return None
    function, patches = _function(program, place, "copy")
    first = next((s for s in body.body if not is_text(s)), None)
    if first is None or not function:
        return None
    copied = lines_before(source, first, f"{name} = {function}({name})")
    return apply_patches([*patches, copied])


def _function(program: Program, place: Place | None, name: str) -> tuple[str, list[Patch]]:
    """How a function of `copy` is called there, with the import where it is missing; "" where the
    program uses that name for something of its own."""
    source, known = program.source_at(place), imports_at(program, place).local(f"copy.{name}")
    patches = [] if known or source is None else imported(program, source, "copy")
    return known or (f"copy.{name}" if patches else ""), patches


def imported(program: Program, source: Source, *modules: str) -> list[Patch]:
    """`import copy` before the source's first import, else before its first statement; [] where the
    program uses the name for something of its own."""
    statements = source.tree.body
    imports = [s for s in statements if isinstance(s, (ast.Import, ast.ImportFrom))]
    plain = [s for s in imports if getattr(s, "module", "") != "__future__"]
    first = next(iter(plain or statements), None)
    names = {module.partition(".")[0] for module in modules}
    known = (used_names(tree.module) for tree in tree_of(program, source).namespace)
    if first is None or first.col_offset or not names.isdisjoint(chain.from_iterable(known)):
        return []
    return [lines_before(source, first, *(f"import {module}" for module in modules))]
