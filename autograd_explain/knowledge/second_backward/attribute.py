"""An attribute computed once in the constructor, computed anew where each round uses it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from autograd_explain.model import Place
from autograd_explain.program import Program
from autograd_explain.rewrite import Edits
from autograd_explain.rewrite.analysis.effects import effects, local_names, reads_any
from autograd_explain.rewrite.engine.cst_tools import (
    dotted,
    head,
    make,
    parse,
    same,
    single_targets,
    targets,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.edits import merge
from autograd_explain.rewrite.engine.tree import Statement, Tree, statements_in, tree_at
from autograd_explain.rewrite.transforms.kept_argument import (
    Constructor,
    constructor_of,
    kept_locals,
    method_of,
)
from autograd_explain.rewrite.transforms.move_statement import independent


def recompute_attribute(
    program: Program, place: Place, use_place: Place, attribute: str
) -> Edits | None:
    """Put what computes `self.<attribute>` into a method, and call it before the use.

    `place` is in the method (as a rule `__init__`) that computes the attribute from parameters;
    `use_place` is the statement, in a loop or a function, that reads `model.<attribute>`.  Local
    names the computation needs are kept on self.  None where the computation cannot be told from
    the rest of the method.
    """
    tree, user = tree_at(program, place), tree_at(program, use_place)
    inside = tree.statement(place)
    use = user.statement(use_place)
    if inside is None or use is None:
        return None
    found, reader = constructor_of(tree, inside), _reader(use, attribute)
    if found is None or reader is None:
        return None
    run = _computation(tree, found.owner, found.method, attribute)
    if not run or user.block_of(use) is None or tree.inside(use, found.method):
        return None
    name = _method_name(found.owner, attribute)
    extracted = _extract(found, run, name)
    called = make("{x}." + name + "()", x=reader)
    if extracted is None:
        return None
    calling = extracted if user is tree else Draft(user)
    calling.before(use, [called])
    return calling.edits() if user is tree else merge(extracted.edits(), calling.edits())


def element_made_again(
    program: Program, place: Place, use_place: Place, element: str
) -> Edits | None:
    """`self.<element> = …`, for an element of a container as `parts[2]`, with the value that the
    constructor's statement at `place` computed of parameters alone, where the method that has the
    use begins to read the container."""
    tree, user = tree_at(program, place), tree_at(program, use_place)
    made, use = tree.statement(place), user.statement(use_place)
    found, reading = constructor_of(tree, made), constructor_of(user, use)
    if found is None or reading is None or not isinstance(made, cst.Assign):
        return None
    name, method = element.partition("[")[0], reading.method
    if reading.owner is not found.owner or method is found.method:
        return None
    if _locals_read(found.method, [made]) - {"self"}:
        return None
    first = next((s for s in statements_in(method.body) if reads_any(s, {f"self.{name}"})), None)
    target = parse(f"self.{element}")
    if first is None or target is None:
        return None
    return Draft(tree).before(first, [make("{x} = {y}", x=target, y=made.value)]).edits()


def _reader(use: Statement, attribute: str) -> cst.BaseExpression | None:
    """`model` in the statement's `model.<attribute>`; None where it is not one plain name."""
    found = {
        dotted(node.value): node.value
        for node in head(use)
        if isinstance(node, cst.Attribute) and node.attr.value == attribute
    }
    return next(iter(found.values())) if len(found) == 1 and None not in found else None


def _computation(
    tree: Tree, owner: cst.ClassDef, method: cst.FunctionDef, attribute: str
) -> list[Statement]:
    """The method's own statements that write the attribute, directly or through a helper method."""
    helpers = {
        f.name.value for f in _methods(owner) if f is not method and _writes(tree, f, attribute)
    }
    inside = statements_in(method.body)
    run = [s for s in inside if _contributes(tree, s, attribute, helpers)]
    if not run or not isinstance(run[0], (cst.Assign, cst.AnnAssign)):
        return []
    first, last = (next(i for i, s in enumerate(inside) if s is x) for x in (run[0], run[-1]))
    others = [s for s in inside[first:last] if all(s is not r for r in run)]
    after = inside[last + 1 :]
    used_later = any(f"self.{attribute}" in effects(s).reads for s in (*others, *after))
    return run if independent(run, others) and not used_later else []


def _contributes(tree: Tree, statement: Statement, attribute: str, helpers: set[str]) -> bool:
    if isinstance(statement, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
        return any(same(tree, t, f"self.{attribute}") for t in targets(statement))
    if isinstance(statement, cst.For):
        return _writes(tree, statement, attribute)
    if isinstance(statement, cst.Expr) and isinstance(statement.value, cst.Call):
        return (dotted(statement.value.func) or "").removeprefix("self.") in helpers
    return False


def _writes(tree: Tree, node: cst.CSTNode, attribute: str) -> bool:
    statements = (n for n in walk(node) if isinstance(n, (cst.Assign, cst.AugAssign)))
    return any(same(tree, t, f"self.{attribute}") for s in statements for t in targets(s))


def _methods(owner: cst.ClassDef) -> Iterator[cst.FunctionDef]:
    yield from (s for s in statements_in(owner.body) if isinstance(s, cst.FunctionDef))


def _method_name(owner: cst.ClassDef, attribute: str) -> str:
    taken = {f.name.value for f in _methods(owner)}
    wish = f"compute_{attribute}"
    return wish if wish not in taken else f"_{wish}"


def _extract(where: Constructor, run: list[Statement], name: str) -> Draft | None:
    """The run as a method of its own behind the one it stood in, which calls it instead."""
    tree, method = where.tree, where.method
    kept = kept_locals(where, sorted(_locals_read(method, run) - {"self"}), run)
    if kept is None:
        return None
    draft = Draft(tree)
    saved = [k.saved for k in kept.values() if k.saved is not None]
    draft.instead(run[0], [*saved, make(f"self.{name}()")])
    for statement in run[1:]:
        draft.remove(statement)
    return draft.after(method, [method_of(name, run, kept)])


def _locals_read(method: cst.FunctionDef, run: list[Statement]) -> set[str]:
    reads = {path.partition(".")[0] for s in run for path in effects(s).reads}
    leaves = (leaf for s in run for leaf in single_targets(s))
    assigned = {leaf.value for leaf in leaves if isinstance(leaf, cst.Name)}
    return (reads & local_names(method)) - assigned
