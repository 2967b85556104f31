"""What a statement reads and writes, and whether a name may be given a new value here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile

import libcst as cst

from ...program import Program
from ...program_index import index_of
from ..engine.cst_tools import (
    called_name,
    called_on,
    clauses,
    dotted,
    is_label,
    named,
    single_targets,
    unpacked,
    walk,
)
from ..engine.magics import is_masked
from ..engine.tree import Statement, Tree
from .inplace_writes import words

#: Functions that only look at their arguments.
_LOOK_ONLY = words(
    "print len display float int str repr range isinstance type id sum min max abs bool"
)
#: Names to LibCST, values to Python: nothing writes them.
_CONSTANTS = frozenset({"True", "False", "None"})
_JUMPS = (cst.Return, cst.Break, cst.Continue, cst.Raise, cst.Yield)


@dataclass
class Effects:
    """Paths (`self.h`, `loss`) read and written; `barrier` where nothing may be moved past."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    barrier: bool = False

    def conflicts(self, other: Effects) -> bool:
        """Whether the order of the two matters, as far as names tell."""
        pairs = ((self.writes, other.reads | other.writes), (other.writes, self.reads))
        overlap = any(_within(a, b) or _within(b, a) for a, b in pairs)
        return self.barrier or other.barrier or overlap


@lru_cache(maxsize=1024)  # nodes are what they are; those above a site are asked for each name
def effects(node: cst.CSTNode) -> Effects:
    """What a statement does to names, as far as one sees from its text; not to be changed.

    A call whose value is dropped is there for its effect: it writes its receiver and its
    arguments (`log.append(x)`, `freeze(net)`).  What functions do to globals is not seen.
    """
    found = Effects()
    _collect(node, found)
    return found


def takes_next(node: cst.CSTNode) -> bool:
    """Whether a node takes something away (`next(batches)`, `queue.pop()`): it gives another
    value each time."""
    return any(called_name(n) in _TAKING for n in walk(node))


_TAKING = words("next input pop popleft popitem readline __next__")


def _collect(node: cst.CSTNode, found: Effects) -> None:
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        found.writes.add(node.name.value)
        found.reads |= {path for n in walk(node) if (path := dotted(n))}
        return
    magic = isinstance(node, cst.SimpleString) and is_masked(node.value)
    if magic or isinstance(node, _JUMPS):
        found.barrier = True
    if isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
        found.writes |= {path for leaf in single_targets(node) if (path := base_path(leaf))}
        found.writes |= _bound_by_import(node)
    if isinstance(node, cst.Expr):
        found.writes |= _touched_by_call(node.value)
    if isinstance(node, cst.NamedExpr) and isinstance(node.target, cst.Name):
        found.writes.add(node.target.value)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        name, path = node.func.attr.value, dotted(node.func.value)
        if path and name.endswith("_") and not name.endswith("__"):
            found.writes.add(path)
    path = dotted(node)
    if path is not None:
        found.reads.add(path)
        return
    if isinstance(node, cst.BaseComp):
        _collect_comprehension(node, found)
        return
    if isinstance(node, cst.Arg):
        _collect(node.value, found)
        return
    only_written = _only_written(node)
    for child in node.children:
        if not any(child is target for target in only_written):
            _collect(child, found)


def _collect_comprehension(node: cst.BaseComp, found: Effects) -> None:
    """The names that a comprehension binds are its own; a write to an element may reach what it
    goes through."""
    inside, through, (bound, outside) = Effects(), Effects(), _bound_by(node)
    for child in node.children:
        _collect(child, inside)
    _collect(outside, through)
    own = {w for w in inside.writes if w.partition(".")[0] in bound}
    found.reads |= {r for r in inside.reads if r.partition(".")[0] not in bound} | through.reads
    found.writes |= (inside.writes - own) | (through.reads if own else set())
    found.barrier |= inside.barrier


def _bound_by(node: cst.BaseComp) -> tuple[set[str], cst.BaseExpression]:
    """The names that a comprehension binds, and what it goes through: evaluated outside."""
    first, *_ = bindings = [*clauses(node)]
    return set[str]().union(*(used_names(c.target) for c in bindings)), first.iter


def _only_written(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Targets among a node's children that get a value without being read."""
    if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr)):
        plain = all(dotted(leaf) is not None for leaf in unpacked(node.target))
        return [node.target] if plain else []
    if isinstance(node, cst.AsName):
        return [node.name]
    return []


def base_path(node: cst.CSTNode) -> str | None:
    """The longest plain path that a target belongs to: `self.buf[i].x` writes `self.buf`."""
    if isinstance(node, (cst.StarredElement, cst.Subscript)):
        return base_path(node.value)
    path = dotted(node)
    if path is None and isinstance(node, (cst.Attribute, cst.Call)):
        return base_path(node.value if isinstance(node, cst.Attribute) else node.func)
    return path


def _bound_by_import(statement: cst.CSTNode) -> set[str]:
    names = statement.names if isinstance(statement, (cst.Import, cst.ImportFrom)) else ()
    bound = () if isinstance(names, cst.ImportStar) else names
    return {(a.evaluated_alias or a.evaluated_name).partition(".")[0] for a in bound}


def _touched_by_call(value: cst.BaseExpression) -> set[str]:
    if isinstance(value, cst.Await):
        value = value.expression
    if not isinstance(value, cst.Call) or dotted(value.func) in _LOOK_ONLY:
        return set()
    found = {path for a in value.args if (path := base_path(a.value))} - _CONSTANTS
    if called_on(value, "manual_backward"):
        return found  # of what the module is, a backward of its own changes nothing
    if isinstance(value.func, cst.Attribute) and (path := base_path(value.func.value)):
        found.add(path)
    return found


def _within(paths: set[str], owners: set[str]) -> bool:
    """Whether one of the paths is, or is an attribute of, one of the others."""
    return any(f"{path}.".startswith(f"{owner}.") for path in paths for owner in owners)


def reads_any(node: cst.CSTNode, names: set[str]) -> bool:
    """Whether a node reads one of the names, or an attribute of one."""
    return _within(effects(node).reads, names)


def rebinds_any(node: cst.CSTNode, names: set[str]) -> bool:
    """Whether a node gives one of the names another value (or changes it by its methods)."""
    return _within(names, effects(node).writes)


def used_names(node: cst.CSTNode) -> set[str]:
    """Every plain name that occurs in a node, whatever for; attributes and keywords are none."""
    labels = {id(n.attr) for n in walk(node) if isinstance(n, cst.Attribute)}
    labels |= {id(n.keyword) for n in walk(node) if isinstance(n, cst.Arg)}
    return {n.value for n in walk(node) if isinstance(n, cst.Name) and id(n) not in labels}


def fresh(tree: Tree, at: cst.CSTNode, wish: str) -> str:
    """A local name not used in the scope: the wish itself, else `new_<wish>`, `<wish>_2` …"""
    scope = tree.scope_of(at)
    taken = used_names(scope) | {"self", "cls"}
    if isinstance(scope, cst.Module):  # another cell may use the wish itself
        taken.add(wish)
    options: Iterator[str] = iter([wish, f"new_{wish}", *(f"{wish}_{n}" for n in range(2, 100))])
    return next(name for name in options if name not in taken)


def can_rebind(tree: Tree, statement: Statement, target: cst.BaseExpression) -> bool:
    """Whether `target = new value` here reaches everyone who reads the target later.

    Not so for a property, which says itself what an assignment does (or allows none); for a loop
    variable or a parameter that nobody reads afterwards (`for p in params: p.sub_(…)` must change
    the element itself), or for an element of what an object holds (`for p in self.params:`); for a
    global written inside a function; inside a lambda or comprehension.
    """
    if isinstance(target, cst.Subscript):
        return _is_path(target.value)
    if isinstance(target, cst.Attribute):
        return _is_path(target.value) and not _is_property(tree.program, target.attr.value)
    if not isinstance(target, cst.Name):
        return False
    scope = tree.scope_of(target)
    if not isinstance(scope, (cst.Module, cst.FunctionDef, cst.ClassDef)):
        return False
    name = target.value
    loop = loop_binding(tree, statement, name)
    if loop is not None and _is_held(iterated(loop.iter, loop.target, name)):
        return False
    if isinstance(scope, cst.FunctionDef):
        if name in _declared(scope):
            return True
        return name in local_names(scope) and read_later(tree, statement, name)
    return read_later(tree, statement, name) if loop is not None else True


def _is_held(container: cst.BaseExpression | None) -> bool:
    """`self.params`, `net.parameters()`: whose elements others find there, too."""
    if container is None:
        return False
    parameters = called_on(container, "parameters") is not None
    return parameters or (dotted(container) or "").startswith("self.")


def _is_property(program: Program, name: str) -> bool:
    """Whether a class of the program has a property of this name."""
    return any(
        ast.unparse(decorator).rpartition(".")[2] == "property"
        for found in index_of(program).functions(name)
        for decorator in getattr(found.node, "decorator_list", ())
    )


def _is_path(node: cst.BaseExpression) -> bool:
    """Whether an attribute or item of `node` can be assigned: a plain path, evaluated safely."""
    while isinstance(node, cst.Subscript):
        node = node.value
    return dotted(node) is not None


def is_own_local(tree: Tree, statement: Statement, node: cst.Name) -> bool:
    """Whether a name belongs to the function around it and is not an element of a loop's list."""
    return _is_own(tree, statement, tree.scope_of(node), node.value)


def is_own_variable(tree: Tree, statement: Statement, name: str) -> bool:
    """Whether what a statement reads by a name was made in the function around the statement, and
    is no element of a loop's list."""
    scope = tree.scope_of(statement)
    given = isinstance(scope, cst.FunctionDef) and name in parameter_names(scope)
    return not given and _is_own(tree, statement, scope, name)


def _is_own(tree: Tree, statement: Statement, scope: cst.CSTNode, name: str) -> bool:
    if not isinstance(scope, cst.FunctionDef) or name in _declared(scope):
        return False
    return name in local_names(scope) and loop_binding(tree, statement, name) is None


def loop_element_is_unseen(tree: Tree, statement: Statement, name: str) -> bool:
    """Whether nobody looks at a loop's element after the statement, not in its list either."""
    loop = loop_binding(tree, statement, name)
    if loop is None or read_later(tree, statement, name):
        return False
    container = iterated(loop.iter, loop.target, name)
    if not isinstance(container, cst.Name) or not is_own_variable(tree, loop, container.value):
        return False
    inside = any(named(loop.body, container.value))
    return not inside and not read_later(tree, loop, container.value)


def parameter_names(scope: cst.FunctionDef | cst.Lambda) -> set[str]:
    return {n.name.value for n in walk(scope.params) if isinstance(n, cst.Param)}


def gone_through(
    iterable: cst.BaseExpression, target: cst.BaseExpression
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What a loop gives the elements of each list to, and the list: `a` and `others`, `x` and `xs`
    of `for a, x in zip(others, reversed(xs))`."""
    call = dotted(iterable.func) if isinstance(iterable, cst.Call) else None
    given = [a.value for a in iterable.args] if isinstance(iterable, cst.Call) else []
    parts = [e.value for e in target.elements] if isinstance(target, cst.Tuple) else []
    if parts and call in ("zip", "enumerate"):
        for part, over in zip(parts[call == "enumerate" :], given, strict=False):
            yield from gone_through(over, part)
    elif call in ("reversed", "list", "iter"):
        if len(given) == 1:
            yield from gone_through(given[0], target)
    else:
        yield target, iterable


def iterated(
    iterable: cst.BaseExpression, target: cst.BaseExpression, name: str
) -> cst.BaseExpression | None:
    """The list whose elements a loop's name is: `xs` in `for a, x in zip(others, reversed(xs))`."""
    whole = (p for p in gone_through(iterable, target) if not isinstance(p[0], cst.Tuple))
    return next((over for part, over in whole if name in used_names(part)), None)


def binding_around(tree: Tree, name: cst.Name) -> tuple[cst.CSTNode, cst.BaseExpression] | None:
    """The loop or comprehension around a name that gives it its value, and the list whose
    elements these are."""
    for around in tree.ancestors(name):
        for clause in clauses(around):
            over = iterated(clause.iter, clause.target, name.value)
            if over is not None:
                return around, over
    return None


def read_later(tree: Tree, statement: Statement, name: str) -> bool:
    """Whether a local name may be read after the statement, in a next round of a loop included."""
    scope = tree.scope_of(statement)
    after = tree.span(statement)
    binding = loop_binding(tree, statement, name)
    around = [*takewhile(lambda loop: loop is not binding, _enclosing_loops(tree, statement))]
    for node in named(binding or scope, name):
        if not tree.inside(node, statement) and _is_read(tree, node):
            later = tree.start(node) >= (after.end_line, after.end_column)
            if later or any(tree.inside(node, loop) for loop in around):
                return True
    return False


def _is_read(tree: Tree, node: cst.Name) -> bool:
    if is_label(tree, node) or _is_own_of_comprehension(tree, node):
        return False
    statement = tree.statement_of(node)
    if statement is None or isinstance(statement, cst.AugAssign):
        return True
    return not any(node is t for t in single_targets(statement))


def _is_own_of_comprehension(tree: Tree, node: cst.Name) -> bool:
    """Whether a comprehension around a name binds it: `sum(p.sum() for p in parts)`."""
    for around in tree.ancestors(node):
        if isinstance(around, cst.BaseComp):
            bound, outside = _bound_by(around)
            if node.value in bound and not tree.inside(node, outside):
                return True
    return False


def _enclosing_loops(tree: Tree, statement: Statement) -> list[cst.For | cst.While]:
    """The loops around a statement within its scope, innermost first."""
    scope = tree.scope_of(statement)
    return [loop for loop in tree.loops(statement) if tree.scope_of(loop) is scope]


def loop_binding(tree: Tree, statement: Statement, name: str) -> cst.For | None:
    """The innermost loop whose target is the name."""
    for loop in _enclosing_loops(tree, statement):
        if isinstance(loop, cst.For) and name in map(dotted, unpacked(loop.target)):
            return loop
    return None


def _declared(scope: cst.FunctionDef) -> set[str]:
    """Names declared global or nonlocal in a function."""
    items = [n for n in walk(scope.body) if isinstance(n, (cst.Global, cst.Nonlocal))]
    return {item.name.value for statement in items for item in statement.names}


def local_names(scope: cst.FunctionDef) -> set[str]:
    """Parameters and every name bound in a function."""
    return parameter_names(scope) | bound_in(scope.body)


def bound_in(block: cst.CSTNode) -> set[str]:
    """The names that the statements of a block bind."""
    nodes = list(walk(block))
    leaves = (leaf for n in nodes for leaf in single_targets(n))
    names = {leaf.value for leaf in leaves if isinstance(leaf, cst.Name)}
    return names.union(*map(_bound_by_import, nodes))
