"""A computation that leaves torch, goes on in NumPy under names of its own, and comes back.

`a = np.arccos(c.detach().numpy())`, `m = torch.from_numpy(np.cos(a + 0.3))` becomes
`a = torch.arccos(c)`, `m = torch.cos(a + 0.3)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ...arguments import bound_arguments, parameters
from ...forward_flow import bound, contains, is_read, is_simple, reads
from ...model import Place
from ...program import Program, Source, called_name, last_name, own_nodes
from ...program_index import index_of
from ..engine.imports import Imports
from .uncut import (
    ALIKE,
    Patch,
    code_of,
    surrounded,
    tensors_instead_of_copy,
    torch_instead_of_numpy,
    without_cut,
    without_ending,
)

#: What makes a tensor of numbers.
RETURNS = frozenset("Variable tensor as_tensor asarray from_numpy Tensor FloatTensor".split())
_METHODS = frozenset({"clip", "sum", "mean", "reshape", "len"})
_AXES = frozenset({"axis", "keepdims"})
#: What NumPy only asks of any object, and what gives one number.
_NO_FUNCTION = frozenset({"shape", "ndim", "size"})
_NUMBERS = frozenset({"len", "int", "float", "item"})


@dataclass(frozen=True, eq=False)
class _Detour:
    """The statements of one scope that a value passes through which leaves torch in `left`, and
    the names of the arrays on its way; some are tensors again behind the line told."""

    program: Program
    source: Source
    scope: ast.AST
    place: Place
    left: ast.expr
    parts: tuple[ast.stmt, ...]
    arrays: frozenset[str]
    tensors: Mapping[str, int]

    @property
    def imports(self) -> Imports:
        return Imports.of(self.program, self.source)

    def at(self, node: ast.AST) -> Place:
        return replace(self.place, span=self.source.span(node))

    def computes(self, node: ast.AST) -> bool:
        """Whether an expression is computed of the arrays."""
        return contains(node, self.left) or reads(node, self.arrays)

    def foreign(self, node: ast.expr) -> list[ast.Name | ast.Attribute]:
        """The arrays from elsewhere that an expression computes with."""
        sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
        named = (n for side in sides if not self.computes(side) for n in _named(side))
        return [n for n in named if not _is_number(self, n)]

    @property
    def returns(self) -> list[ast.Call]:
        """The calls that make a tensor of what comes from the arrays."""
        return [c for s in self.parts for c in _back(s, self.left, self.arrays)]

    @property
    def computing(self) -> Iterator[ast.expr]:
        """What is computed of the arrays, before it is a tensor again."""
        returns, inside = self.returns, {id(n) for n in ast.walk(self.left)}
        for node in (n for s in self.parts for n in ast.walk(s)):
            if isinstance(node, ast.expr) and id(node) not in inside and self.computes(node):
                if node in returns or not any(contains(node, call) for call in returns):
                    yield node


def in_torch(program: Program, place: Place, left: ast.expr) -> list[Patch] | None:
    """The whole detour that begins with `left` (`c.detach().numpy()`) in torch; [] where no tensor
    is made of it again, None where a part of it cannot be said in torch."""
    detour = _detour(program, place, left)
    if detour is None or not detour.returns:
        return None if detour is None else []
    if _read_elsewhere(detour) or any(_writes(s, detour.arrays) for s in detour.parts):
        return None
    patches = without_cut(program, detour.at(left))
    for node in detour.computing:
        found = _call(detour, node) if isinstance(node, ast.Call) else _operands(detour, node)
        if found is None:
            return None
        patches += found
    return None if _stays(detour, patches) else patches


def arrays_beside(program: Program, place: Place, node: ast.expr) -> list[Patch]:
    """The arrays from elsewhere that a call of NumPy's has beside a parameter, as tensors."""
    source = program.source_at(place)
    scope = None if source is None else source.function_at(place)
    if source is None or scope is None or not _is_numpy_call(Imports.of(program, source), node):
        return []
    given = frozenset(parameters(scope)) - {"self"}
    detour = _Detour(program, source, scope, place, node, (), given, {})
    computed = (n for n in ast.walk(node) if isinstance(n, ast.BinOp))
    return [patch for n in computed for patch in _operands(detour, n)]


def _writes(statement: ast.stmt, arrays: frozenset[str]) -> bool:
    """`a[0] = 1`"""
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    return any(isinstance(t, ast.Subscript) and reads(t, arrays) for t in targets)


def _call(detour: _Detour, call: ast.Call) -> list[Patch] | None:
    """What is computed of an array, in torch."""
    name, program = called_name(call), detour.program
    if name in RETURNS:
        return tensors_instead_of_copy(program, detour.at(call), False) or None
    known = name in ALIKE and {k.arg for k in call.keywords} <= _AXES and call.args
    found = torch_instead_of_numpy(program, detour.at(call)) if known else []
    return found or ([] if name in _METHODS else None)


def _operands(detour: _Detour, node: ast.expr) -> list[Patch]:
    """The arrays from elsewhere that an array is computed with, as tensors."""
    torch, arrays = detour.imports.local("torch"), detour.foreign(node)
    tensor = without_ending(detour.left)
    on_device = ".cpu" in ast.unparse(detour.left) and isinstance(tensor, (ast.Name, ast.Attribute))
    device = f", device={ast.unparse(tensor)}.device" if on_device else ""
    around = (f"{torch}.as_tensor(", f"{device})")
    return [p for n in arrays if torch for p in surrounded(detour.source, n, n, *around)]


def _stays(detour: _Detour, patches: Iterable[Patch]) -> bool:
    """Whether NumPy would go on computing with the value once it does not leave torch: in a call
    that no patch changes, or with an array."""
    source, nodes = detour.source, list(detour.computing)
    calls = (n for n in nodes if isinstance(n, ast.Call) and _is_numpy_call(detour.imports, n))
    stay = {source.span(call.func) for call in calls}
    stay |= {source.span(array).start for node in nodes for array in detour.foreign(node)}
    return not stay <= {p.span for p in patches if p.source == source}


def _read_elsewhere(detour: _Detour) -> bool:
    """Whether anything else uses an array: a condition, an earlier line of a loop, another cell."""
    inside = {id(n) for p in detour.parts for n in ast.walk(p)}
    local = not isinstance(detour.scope, ast.Module)
    sharing = index_of(detour.program).namespace(detour.source)
    roots = [detour.scope] if local else [detour.source.tree, *(s.tree for s in sharing)]
    read = (n for r in roots for n in ast.walk(r) if is_read(n, detour.arrays))
    others = (n for n in read if isinstance(n, ast.Name) and id(n) not in inside)
    return any(not local or n.lineno <= detour.tensors.get(n.id, n.lineno) for n in others)


def _detour(program: Program, place: Place, left: ast.expr) -> _Detour | None:
    source = program.source_at(place)
    if source is None:
        return None
    scope = source.function_at(place) or source.tree
    statements = [n for n in own_nodes(scope) if isinstance(n, ast.stmt)]
    first = next((s for s in statements if is_simple(s) and contains(s, left)), None)
    if first is None:
        return None
    arrays = left_names = _names_of(first, left, frozenset())
    reading, tensors = list[ast.stmt](), dict[str, int]()
    for statement in statements[statements.index(first) + 1 :]:
        if is_simple(statement) and reads(statement, left_names):
            reading.append(statement)
            new = _names_of(statement, left, left_names)
            again = bound(statement) & left_names - new  # `z = torch.from_numpy(z)`
            arrays, left_names = arrays | new, (left_names | new) - again
            tensors |= dict.fromkeys(again, statement.end_lineno or statement.lineno)
    return _Detour(program, source, scope, place, left, (first, *reading), arrays, tensors)


def _names_of(statement: ast.stmt, left: ast.expr, arrays: frozenset[str]) -> frozenset[str]:
    """The name a statement gives to an array."""
    if not isinstance(statement, ast.Assign) or _back(statement.value, left, arrays):
        return frozenset()
    return frozenset(t.id for t in statement.targets if isinstance(t, ast.Name))


def _back(root: ast.AST, left: ast.expr, arrays: frozenset[str]) -> list[ast.Call]:
    """The calls that make a tensor of what comes from the arrays."""
    return [
        n for n in ast.walk(root)
        if isinstance(n, ast.Call) and called_name(n) in RETURNS and n.args
        and (contains(n.args[0], left) or reads(n.args[0], arrays))
    ]  # fmt: skip


def _named(node: ast.expr) -> list[ast.Name | ast.Attribute]:
    """What stands by name in an operand: `mask` of `1 - mask`."""
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        inner = (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))
        return [found for n in inner for found in _named(n)]
    return [node] if isinstance(node, (ast.Name, ast.Attribute)) else []


def _is_number(detour: _Detour, node: ast.Name | ast.Attribute) -> bool:
    """Whether a name from elsewhere is that of a number, as far as the program tells."""
    code = code_of(detour.program, detour.place, node)
    if detour.imports.full(code) in ("math.pi", "math.e", "numpy.pi", "numpy.e"):
        return True
    return not _may_be_array(detour.program, code.rpartition(".")[2])


def _may_be_array(program: Program, name: str) -> bool:
    """Whether the program gives an array to this name (or attribute), directly or by others."""
    return any(
        called_name(n) == "numpy" or _is_numpy_call(Imports.of(program, source), n)
        for source, value in _all_given(program, name)
        for n in ast.walk(value)
    )


def _all_given(program: Program, name: str) -> Iterator[tuple[Source, ast.expr]]:
    """What is given to a name, directly or by the names in it."""
    seen, pending = set[str](), [name]
    while pending:
        seen.add(name := pending.pop())
        for source, value in _given(program, name):
            yield source, value
            pending += {last_name(n) for n in ast.walk(value)} - seen - {"self", ""}


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
