"""A statement of a helper that has to wait for something its caller does later."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping, Sequence

import libcst as cst

from autograd_explain.arguments import bind
from autograd_explain.model import Place
from autograd_explain.program import Program, Source
from autograd_explain.program_index import index_of
from autograd_explain.rewrite.analysis.effects import effects, local_names
from autograd_explain.rewrite.engine.cst_tools import (
    Renamed,
    dotted,
    given_by,
    positional_parameters,
    targets,
    unpacked,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.proposal import Edits
from autograd_explain.rewrite.engine.tree import Statement, Tree, statements_in, tree_at
from autograd_explain.rewrite.transforms.move_statement import independent, lifted


def wait_outside(program: Program, call: Place, inner: Place, goal: Place) -> Edits | None:
    """Move the call at `inner`, in the function that the statement at `call` calls, behind `goal`.

    `out = model(x); binarizer.restore(); return out` loses its second statement, and the caller
    says `binarizer.restore()` after `loss.backward()`, with what it passed in place of the
    parameters.  None where the function is used elsewhere too, or names do not allow it.
    """
    tree, outer = tree_at(program, inner), tree_at(program, call)
    if tree_at(program, goal) is not outer:
        return None
    moved, caller, target = tree.statement(inner), outer.statement(call), outer.statement(goal)
    function = None if moved is None else tree.scope_of(moved)
    if moved is None or caller is None or target is None:
        return None
    if not isinstance(function, cst.FunctionDef) or not _may_leave(tree, function, moved):
        return None
    method = isinstance(tree.parents.get(tree.parents[function]), cst.ClassDef)
    sources = (tree.source, outer.source)
    call_node = _only_call(program, sources, caller, function.name.value, method)
    arguments = None if call_node is None else _arguments(function, call_node)
    if tree is not outer and not _is_same_namespace(tree, outer, moved, arguments or {}):
        return None
    new = None if arguments is None else _in_callers_words(function, moved, arguments)
    if arguments is None or new is None or not _fits(outer, caller, target, new, arguments):
        return None
    return _edits((tree, moved), (outer, target), new)


def _is_same_namespace(
    tree: Tree, outer: Tree, moved: Statement, arguments: Mapping[str, cst.BaseExpression]
) -> bool:
    """Whether the globals that a statement reads are the caller's too: cells share theirs."""
    cells = tree.source.cell is not None and outer.source.cell is not None
    read = {path.partition(".")[0] for path in effects(moved).reads}
    return cells or read <= set(arguments)


def _may_leave(tree: Tree, function: cst.FunctionDef, moved: Statement) -> bool:
    """A call for its effect, in the function's own block, that nothing behind it looks at."""
    if not isinstance(moved, cst.Expr) or tree.block_of(moved) is not function.body:
        return False
    once = (cst.Yield, cst.Await)
    if function.decorators or any(isinstance(n, once) for n in walk(function)):
        return False
    inside = statements_in(function.body)
    at = next(i for i, s in enumerate(inside) if s is moved)
    if any(isinstance(n, cst.Return) for s in inside[:at] for n in walk(s)):
        return False  # the caller would make the call for an early return too
    later = inside[at + 1 :]
    # A return ends the function; what counts is whether its value sees the effect.
    values = [s.value or s if isinstance(s, cst.Return) else s for s in later]
    written = effects(moved).writes
    return not any(_touches(p, written) for v in values for p in effects(v).reads) and independent(
        [moved], [s for s in later if not isinstance(s, cst.Return)]
    )


def _touches(path: str, written: set[str]) -> bool:
    return any(f"{path}.".startswith(f"{w}.") for w in written)


def _only_call(
    program: Program, sources: Sequence[Source], caller: Statement, name: str, method: bool
) -> cst.Call | None:
    """The caller's one call of the function; None where the program, or one of the sources (they
    may be files), names it elsewhere too."""
    nodes = (n for source in {*index_of(program).sources, *sources} for n in ast.walk(source.tree))
    said = (getattr(n, "attr" if method else "id", "") for n in nodes)
    calls = [
        n
        for n in walk(caller)
        if isinstance(n, cst.Call) and (dotted(n.func) or "").split(".")[-1] == name
    ]
    return calls[0] if len(calls) == 1 and sum(word == name for word in said) == 1 else None


def _arguments(function: cst.FunctionDef, call: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """What the call passes for each parameter that it gives a plain path; None where `*` or `**`
    make that unknown."""
    if any(argument.star for argument in call.args):
        return None
    named, owner = positional_parameters(function), list[tuple[str, cst.BaseExpression]]()
    if named[:1] == ["self"] and isinstance(call.func, cst.Attribute):
        owner.append(("", call.func.value))
    found = bind(named, [*owner, *given_by(call)])
    return {name: value for name, value in found.items() if dotted(value) is not None}


def _in_callers_words(
    function: cst.FunctionDef, moved: Statement, arguments: Mapping[str, cst.BaseExpression]
) -> Statement | None:
    """The statement as the caller has to say it; None where it reads what the function made."""
    made = {
        leaf.value
        for n in walk(function.body)
        if isinstance(n, (cst.BaseSmallStatement, cst.BaseCompoundStatement))
        for t in targets(n)
        for leaf in unpacked(t)
        if isinstance(leaf, cst.Name)
    }
    read = {path.partition(".")[0] for path in effects(moved).reads}
    if read & made or read & local_names(function) - set(arguments):
        return None
    new = moved.visit(Renamed(arguments))
    assert isinstance(new, cst.BaseSmallStatement)
    return new.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)


def _fits(
    tree: Tree,
    caller: Statement,
    target: Statement,
    new: Statement,
    arguments: Mapping[str, cst.BaseExpression],
) -> bool:
    """Whether the statement means the same behind the target, as far as names tell."""
    block = tree.block_of(caller)
    level = lifted(tree, target, block)
    if block is None or level is not target or level is caller:
        return False
    inside = statements_in(block)
    start, end = (next(i for i, s in enumerate(inside) if s is x) for x in (caller, target))
    scope = tree.scope_of(caller)
    mine = local_names(scope) if isinstance(scope, cst.FunctionDef) else set()
    passed = {(dotted(value) or "").partition(".")[0] for value in arguments.values()}
    said = effects(new).reads | effects(new).writes
    if (({path.partition(".")[0] for path in said}) - passed) & mine:
        return False  # a global of the function's that means another thing here
    if start > end or any(_touches(w, {r}) for w in effects(caller).writes for r in said):
        return False
    return independent([new], inside[start + 1 : end + 1])


def _edits(
    origin: tuple[Tree, Statement], goal: tuple[Tree, Statement], new: Statement
) -> Edits | None:
    (tree, moved), (other, target) = origin, goal
    leaving = Draft(tree)
    arriving = leaving if other is tree else Draft(other)
    leaving.remove(moved)
    # Its comments come along, at the end of its line too.
    arriving.after(target, [dataclasses.replace(leaving.piece(moved), node=new)])
    edits = [leaving.edit()] if other is tree else [leaving.edit(), arriving.edit()]
    found = tuple(e for e in edits if e is not None)
    return found if len(found) == len(edits) else None
