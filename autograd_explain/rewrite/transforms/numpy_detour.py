"""A computation that leaves torch, goes on in NumPy under names of its own, and comes back.

`a = np.arccos(c.detach().numpy())`, `m = torch.from_numpy(np.cos(a + 0.3))` becomes
`a = torch.arccos(c)`, `m = torch.cos(a + 0.3)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ...arguments import bound_arguments, parameters
from ...forward_flow import contains, is_read, is_simple, reads
from ...model import Place
from ...program import Program, Source, called_name, last_name, own_nodes
from ...program_index import index_of
from ..engine.imports import Imports
from .uncut import (
    Patch,
    code_of,
    node_at,
    tensors_instead_of_copy,
    torch_instead_of_numpy,
    without_cut,
)

_LEAVES = frozenset({"detach", "numpy", "cpu", "data"})
_RETURNS = frozenset({"tensor", "as_tensor", "asarray", "from_numpy", "FloatTensor"})
#: What NumPy and torch compute alike, element by element or over an axis.
_ALIKE = frozenset(
    "abs absolute fabs sqrt exp log log1p expm1 log2 log10 sin cos tan tanh sinh cosh arcsin "
    "arccos arctan asin acos atan square sign sum mean clip power".split()
)
_METHODS = frozenset({"clip", "sum", "mean", "reshape"})
_AXES = frozenset({"axis", "keepdims"})
#: What NumPy only asks of any object, and what gives one number.
_NO_FUNCTION = frozenset({"shape", "ndim", "size"})
_NUMBERS = frozenset({"len", "int", "float", "item"})


@dataclass(frozen=True, eq=False)
class _Text:
    """A source and the scope of it that the computation runs in."""

    program: Program
    source: Source
    scope: ast.AST
    place: Place

    def at(self, node: ast.AST) -> Place:
        return replace(self.place, span=self.source.span(node))


def in_torch(program: Program, place: Place, left: ast.expr) -> list[Patch] | None:
    """The whole detour that begins with `left` (`c.detach().numpy()`) in torch; [] where no tensor
    is made of it again, None where a part of it cannot be said in torch."""
    detour = _detour(program, place, left)
    if detour is None:
        return None
    text, parts, arrays = detour
    if not any(_back(s, left, arrays) for s in parts):
        return []
    if _read_elsewhere(text, parts, arrays) or any(_writes(s, arrays) for s in parts):
        return None
    patches, inside = without_cut(program, text.at(left)), {id(n) for n in ast.walk(left)}
    for call in (n for s in parts for n in ast.walk(s) if isinstance(n, ast.Call)):
        if id(call) not in inside and _computes(call, left, arrays):
            found = _call(text, call)
            if found is None:
                return None
            patches += found
    return None if stays_in_numpy(program, place, patches) else patches


def _writes(statement: ast.stmt, arrays: frozenset[str]) -> bool:
    """`a[0] = 1`"""
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    return any(isinstance(t, ast.Subscript) and reads(t, arrays) for t in targets)


def _call(text: _Text, call: ast.Call) -> list[Patch] | None:
    """What is computed of an array, in torch."""
    name = called_name(call)
    if name in _RETURNS:
        return tensors_instead_of_copy(text.program, text.at(call), False) or None
    if name in _ALIKE and {k.arg for k in call.keywords} <= _AXES and call.args:
        found = torch_instead_of_numpy(text.program, text.at(call))
        return found or ([] if name in _METHODS else None)
    return [] if name in _METHODS else None


def stays_in_numpy(program: Program, place: Place, patches: Iterable[Patch]) -> bool:
    """Whether NumPy would go on computing with the value at `place` once it does not leave torch:
    in a call that no patch changes, or with an array."""
    left = node_at(program, place)
    detour = None if left is None else _detour(program, place, left)
    if left is None or detour is None:
        return False
    text, parts, arrays = detour
    source = text.source
    imports = Imports.of(program, source)
    changed = {p.span for p in patches if p.source is source}
    for node in (n for s in parts for n in ast.walk(s)):
        used = isinstance(node, ast.expr) and _computes(node, left, arrays)
        if used and isinstance(node, ast.Call) and _is_numpy_call(imports, node):
            if source.span(node.func) not in changed:
                return True
        if used and isinstance(node, ast.BinOp):
            sides = [s for s in (node.left, node.right) if not _computes(s, left, arrays)]
            names = [s for s in sides if isinstance(s, (ast.Name, ast.Attribute))]
            if not all(_is_operand(text, name, arrays) for name in names):
                return True
    return False


def _read_elsewhere(text: _Text, parts: tuple[ast.stmt, ...], arrays: frozenset[str]) -> bool:
    """Whether anything else uses an array: a condition, an earlier line of a loop, another cell."""
    inside = {id(n) for p in parts for n in ast.walk(p)}
    local = not isinstance(text.scope, ast.Module)
    sharing = index_of(text.program).namespace(text.source)
    roots = [text.scope] if local else [text.source.tree, *(s.tree for s in sharing)]
    return any(is_read(n, arrays) and id(n) not in inside for r in roots for n in ast.walk(r))


def _detour(
    program: Program, place: Place, left: ast.expr
) -> tuple[_Text, tuple[ast.stmt, ...], frozenset[str]] | None:
    """The statements of the function that the value leaving in `left` passes through, and the
    names of the arrays on its way."""
    source = program.source_at(place)
    if source is None:
        return None
    text = _Text(program, source, source.function_at(place) or source.tree, place)
    statements = [n for n in own_nodes(text.scope) if isinstance(n, ast.stmt)]
    first = next((s for s in statements if is_simple(s) and contains(s, left)), None)
    if first is None:
        return None
    arrays, reading = _followed(statements, first, left)
    return text, (first, *reading), arrays


def _followed(
    statements: list[ast.stmt], first: ast.stmt, left: ast.expr
) -> tuple[frozenset[str], list[ast.stmt]]:
    """The names of the arrays, and the further statements that read one."""
    arrays = _names_of(first, left, frozenset())
    reading: list[ast.stmt] = []
    for statement in statements[statements.index(first) + 1 :]:
        if is_simple(statement) and reads(statement, arrays):
            reading.append(statement)
            arrays |= _names_of(statement, left, arrays)
    return arrays, reading


def _names_of(statement: ast.stmt, left: ast.expr, arrays: frozenset[str]) -> frozenset[str]:
    """The name a statement gives to an array."""
    if not isinstance(statement, ast.Assign) or _back(statement.value, left, arrays):
        return frozenset()
    return frozenset(t.id for t in statement.targets if isinstance(t, ast.Name))


def _back(root: ast.AST, left: ast.expr, arrays: frozenset[str]) -> list[ast.Call]:
    """The calls that make a tensor of what comes from the arrays."""
    return [
        n for n in ast.walk(root)
        if isinstance(n, ast.Call) and called_name(n) in _RETURNS and n.args
        and (contains(n.args[0], left) or reads(n.args[0], arrays))
    ]  # fmt: skip


def _computes(node: ast.expr, left: ast.expr, arrays: frozenset[str]) -> bool:
    return contains(node, left) or reads(node, arrays)


def _is_operand(text: _Text, node: ast.expr, arrays: frozenset[str]) -> bool:
    """Whether it is one of the arrays, or a number; an array from elsewhere is none."""
    if isinstance(node, ast.UnaryOp):
        return _is_operand(text, node.operand, arrays)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.Name) and node.id in arrays:
        return True
    imports = Imports.of(text.program, text.source)
    code = code_of(text.program, text.place, node)
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    if imports.full(code) in ("math.pi", "math.e", "numpy.pi", "numpy.e"):
        return True
    return not _may_be_array(text.program, code.rpartition(".")[2])


def _may_be_array(program: Program, name: str) -> bool:
    """Whether the program gives an array to this name (or attribute), directly or by others."""
    seen, pending = set[str](), [name]
    while pending:
        seen.add(name := pending.pop())
        for source, value in _given(program, name):
            parts, imports = list(ast.walk(value)), Imports.of(program, source)
            if any(called_name(n) == "numpy" or _is_numpy_call(imports, n) for n in parts):
                return True
            pending += {last_name(n) for n in parts} - seen - {"self", ""}
    return False


def _given(program: Program, name: str) -> Iterator[tuple[Source, ast.expr]]:
    """What is assigned to a name, what a function of this name returns, and what one with such a
    parameter is given; not what is only counted."""
    calls = list(index_of(program).nodes(ast.Call))
    for source, node in index_of(program).nodes(ast.Assign):
        named = name in (last_name(n) for t in node.targets for n in ast.walk(t))
        if named and called_name(node.value) not in _NUMBERS:
            yield source, node.value
    for source, function in index_of(program).nodes(ast.FunctionDef):
        if function.name == name:
            returned = (n.value for n in own_nodes(function) if isinstance(n, ast.Return))
            yield from ((source, value) for value in returned if value is not None)
        if name in parameters(function):
            called = {function.name, getattr(source.parents.get(function), "name", "")}
            for where, call in (c for c in calls if called_name(c[1]) in called):
                given = bound_arguments(function, call).get(name)
                yield from () if given is None else ((where, given),)


def _is_numpy_call(imports: Imports, node: ast.AST) -> bool:
    """`np.exp(a)`; not what NumPy only asks of any object (`np.shape(a)`)."""
    if not isinstance(node, ast.Call) or called_name(node) in _NO_FUNCTION:
        return False
    function = ast.unparse(node.func)
    return "(" not in function and imports.full(function).startswith("numpy.")


def departures(scope: ast.AST, operand: str) -> list[ast.expr]:
    """The longest runs that take an expression out of torch: `c.detach().cpu().numpy()`."""
    found: list[ast.expr] = []
    parents = {c: p for p in ast.walk(scope) for c in ast.iter_child_nodes(p)}
    for node in ast.walk(scope):
        if not isinstance(node, ast.expr) or ast.unparse(node) != operand:
            continue
        run: ast.expr = node
        names = set()
        while isinstance(around := parents.get(run), ast.Attribute) and around.attr in _LEAVES:
            names.add(around.attr)
            call = parents.get(around)
            run = call if isinstance(call, ast.Call) and call.func is around else around
        if "numpy" in names:
            found.append(run)
    return found


def handed_to(scope: ast.AST, operand: str) -> list[ast.Call]:
    """The calls that get an expression as it is for an argument."""
    calls = [n for n in own_nodes(scope) if isinstance(n, ast.Call)]
    return [
        c for c in calls
        if any(ast.unparse(v) == operand for v in (*c.args, *(k.value for k in c.keywords)))
        and not any(isinstance(a, ast.Starred) for a in c.args)
    ]  # fmt: skip
