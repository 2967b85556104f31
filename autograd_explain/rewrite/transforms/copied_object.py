"""An object copied: `copy.deepcopy(net)` where one got a second name, `copy.copy(data)` where a
function keeps its results in what it is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain

import libcst as cst

from ...model import Edits, Place
from ...program import Program, Source
from ...program_index import index_of
from ..analysis.effects import used_names
from ..engine.draft import Draft
from ..engine.edits import then
from ..engine.imports import Imports, imports_at
from ..engine.proposal import Proposal, differing
from ..engine.tree import opening, statement_at, tree_of
from .spot import Spot


def given_to(program: Program, place: Place | None, name: str, of: str = "({x})") -> Edits | None:
    """What the function of this full name (`copy.deepcopy`) gives of the expression at the place,
    or of the `{arguments}` of the call there; an import comes along where it is missing."""
    function, edits = _function(program, place, name)
    if place is None or not function:
        return None
    return then(program, edits, lambda p, at: Spot(p, at).replaced(f"{function}{of}"), place)


#: `copy.deepcopy(x)`
deep_copied = partial(given_to, name="copy.deepcopy")


def called_instead(program: Program, twins: Sequence[tuple[Place, str]]) -> Iterator[Proposal]:
    """`f(x)` -> `package.g(x)`, at each of these calls the function of this full name."""
    edits: Edits = ()
    for place, name in twins:
        edits = then(program, edits, partial(given_to, name=name, of="{arguments}"), place) or edits
    yield from differing("repair_twin", edits, code=", ".join(sorted({name for _, name in twins})))


def argument_copied(program: Program, place: Place, name: str) -> Edits | None:
    """`data = copy.copy(data)` as the first line of the function around the place."""
    function, edits = _function(program, place, "copy.copy")

    def copied(edited: Program, now: Place) -> Edits | None:
        tree, own = statement_at(edited, now)
        around = tree.around(own, cst.FunctionDef)
        first = None if around is None else opening(around.body)
        return Draft(tree).before(first, f"{name} = {function}({name})").edits()

    return then(program, edits, copied, place) if function else None


def _function(program: Program, place: Place | None, name: str) -> tuple[str, Edits]:
    """How a function of a module's is called there, with the import where it is missing; "" where
    the program uses that name for something of its own."""
    source, imports = program.source_at(place), imports_at(program, place)
    known, module = imports.local(name), name.rpartition(".")[0]
    if known and (known != name or (module, module) in imports.names):
        return known, ()
    edits = None if source is None else imported(program, source, module)
    return (name, edits) if edits else ("", ())


def imported(program: Program, source: Source, *modules: str) -> Edits | None:
    """`import copy` before the source's first import, else before its first statement; None where
    the program uses the name for something of its own."""
    statements = source.tree.body
    imports = [s for s in statements if isinstance(s, (ast.Import, ast.ImportFrom))]
    plain = [s for s in imports if getattr(s, "module", "") != "__future__"]
    first = next(iter(plain or statements), None)
    names = {module.partition(".")[0] for module in modules}
    there = Imports.of(program, source).names
    bound = {n.id for _, n in index_of(program).nodes(ast.Name) if isinstance(n.ctx, ast.Store)}
    bound |= {local for local, full in there if local != full}
    names -= {full.partition(".")[0] for _, full in there} - bound
    known = (used_names(tree.module) for tree in tree_of(program, source).namespace)
    if first is None or first.col_offset or not names.isdisjoint(chain.from_iterable(known)):
        return None
    place = source.place(first.lineno, None, first)
    return Spot(program, place).before("".join(f"import {module}\n" for module in modules))
