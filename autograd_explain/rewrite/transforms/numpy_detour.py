"""A computation that leaves torch, goes on in NumPy under names of its own, and comes back.

`a = np.arccos(c.detach().numpy())`, `m = torch.from_numpy(np.cos(a + 0.3))` becomes
`a = torch.arccos(c)`, `m = torch.cos(a + 0.3)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ...model import Place
from ...program import Program, Source, called_name, own_nodes
from ...program_index import index_of
from ..engine.imports import Imports
from .array_values import is_numpy_call, may_be_array
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
    if _read_elsewhere(text, parts, arrays):
        return None
    patches: list[Patch] = []
    for statement in parts:
        found = list(_statement(text, statement, parts, left, arrays))
        if None in found:
            return None
        patches += [p for p in found if p is not None]
    return patches


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
        if used and isinstance(node, ast.Call) and is_numpy_call(imports, node):
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
    return any(_is_array(n, arrays) and id(n) not in inside for r in roots for n in ast.walk(r))


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
    first = next((s for s in statements if _is_simple(s) and _contains(s, left)), None)
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
        if _is_simple(statement) and _reads(statement, arrays):
            reading.append(statement)
            arrays |= _names_of(statement, left, arrays)
    return arrays, reading


def _is_simple(statement: ast.stmt) -> bool:
    return not hasattr(statement, "body")


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
        and (_contains(n.args[0], left) or _reads(n.args[0], arrays))
    ]  # fmt: skip


def _statement(
    text: _Text,
    statement: ast.stmt,
    parts: tuple[ast.stmt, ...],
    left: ast.expr,
    arrays: frozenset[str],
) -> Iterator[Patch | None]:
    """The patches of one statement; None among them where it cannot be said in torch."""
    value = getattr(statement, "value", None)
    back = [] if value is None else _back(value, left, arrays)
    if value is None or not (back or _is_plain(text, statement, parts)):
        yield None
        return
    for call in back:
        yield from _known(tensors_instead_of_copy(text.program, text.at(call), False))
    roots = [c.args[0] for c in back] or [value]
    inside = {id(n) for r in roots for n in ast.walk(r)}
    if any(_is_array(n, arrays) and id(n) not in inside for n in ast.walk(statement)):
        yield None  # read once more where no tensor is made of it
    for root in roots:
        yield from _expression(text, root, left, arrays)


def _is_plain(text: _Text, statement: ast.stmt, parts: tuple[ast.stmt, ...]) -> bool:
    """Whether it gives its value to one name that nothing but these parts binds or writes into."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    target = targets[0] if len(targets) == 1 else None
    if not isinstance(target, ast.Name):
        return False
    own = {id(t) for p in parts if isinstance(p, ast.Assign) for t in p.targets}
    stored = (n for n in ast.walk(text.scope) if not isinstance(getattr(n, "ctx", None), ast.Load))
    return not any(
        (isinstance(n, ast.Name) and n.id == target.id and id(n) not in own)
        or (isinstance(n, ast.Subscript) and getattr(n.value, "id", "") == target.id)
        for n in stored
    )


def _expression(
    text: _Text, node: ast.expr, left: ast.expr, arrays: frozenset[str]
) -> Iterator[Patch | None]:
    """An array's expression in torch."""
    if node is left:
        yield from _known(without_cut(text.program, text.at(node)))
    elif isinstance(node, ast.BinOp):
        yield from _expression(text, node.left, left, arrays)
        yield from _expression(text, node.right, left, arrays)
    elif isinstance(node, ast.UnaryOp):
        yield from _expression(text, node.operand, left, arrays)
    elif isinstance(node, ast.Call):
        yield from _call(text, node, left, arrays)
    elif not _is_operand(text, node, arrays):
        yield None


def _call(
    text: _Text, node: ast.Call, left: ast.expr, arrays: frozenset[str]
) -> Iterator[Patch | None]:
    function = node.func
    method = isinstance(function, ast.Attribute) and function.attr in _METHODS
    if isinstance(function, ast.Attribute) and method and _computes(function.value, left, arrays):
        yield from _expression(text, function.value, left, arrays)
        rest = [*node.args, *(k.value for k in node.keywords)]
    elif called_name(node) in _ALIKE and node.args and {k.arg for k in node.keywords} <= _AXES:
        # The place of a call: the patch renames the function and its keywords.
        yield from _known(torch_instead_of_numpy(text.program, text.at(node)))
        yield from _expression(text, node.args[0], left, arrays)
        rest = [*node.args[1:], *(k.value for k in node.keywords)]
    else:
        yield None
        return
    for given in rest:
        if _computes(given, left, arrays) or not _is_operand(text, given, arrays):
            yield None


def _known(patches: list[Patch]) -> list[Patch | None]:
    return [*patches] or [None]


def _computes(node: ast.expr, left: ast.expr, arrays: frozenset[str]) -> bool:
    return _contains(node, left) or _reads(node, arrays)


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
    return not may_be_array(text.program, code.rpartition(".")[2])


def _reads(root: ast.AST, names: frozenset[str]) -> bool:
    return any(_is_array(n, names) for n in ast.walk(root))


def _is_array(node: ast.AST, names: frozenset[str]) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names


def _contains(root: ast.AST, node: ast.AST) -> bool:
    return any(n is node for n in ast.walk(root))


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


def flows_out(scope: ast.AST, left: ast.expr, other: ast.expr | None = None) -> bool:
    """Whether what is computed from one expression is returned, differentiated, or put together
    with another one."""
    names: frozenset[str] = frozenset()
    for statement in (n for n in own_nodes(scope) if isinstance(n, ast.stmt) and _is_simple(n)):
        if not (_contains(statement, left) or _reads(statement, names)):
            continue
        last = isinstance(statement, ast.Return) or (other and _contains(statement, other))
        if last or any(called_name(n) == "backward" for n in ast.walk(statement)):
            return True
        targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
        names |= {t.id for t in targets if isinstance(t, ast.Name)}
    return False


def handed_to(scope: ast.AST, operand: str) -> list[ast.Call]:
    """The calls that get an expression as it is for an argument."""
    calls = [n for n in own_nodes(scope) if isinstance(n, ast.Call)]
    return [
        c for c in calls
        if any(ast.unparse(v) == operand for v in (*c.args, *(k.value for k in c.keywords)))
        and not any(isinstance(a, ast.Starred) for a in c.args)
    ]  # fmt: skip
