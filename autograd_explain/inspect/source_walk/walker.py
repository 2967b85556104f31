"""From an expression back to the expressions that made its value, across functions and cells.

A `Spot` is an expression where it stands.  `Walker.makers` follows everything that hands a value
on unchanged (names, attributes, containers, returns, arguments) and stops at what computes a new
one.  `Walker.operands` then tells what that computation read.  Live objects decide which function
or module a call means and, where a name still holds it, which value it is; nothing is run.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...incident import Incident
from ...model import Place
from ...program import Program, Source
from . import live
from .bindings import (
    FUNCTIONS,
    Binding,
    Body,
    Each,
    FunctionNode,
    How,
    Index,
    Part,
    all_bindings,
    constant_of,
    ends_with,
    key_of,
    reaching,
)
from .syntax import (
    bodies,
    bound_argument,
    declares_global,
    defaults,
    definition,
    first_parameter,
    inner_expressions,
    inserted,
    is_container,
    is_method,
    is_none,
    parameters,
    pick,
    pick_value,
    returns,
    statements_of,
    stored,
)

_MAX_DEPTH = 40
_MAX_STEPS = 20_000
_PASS_THROUGH = frozenset({"list", "tuple", "reversed", "sorted", "iter", "tqdm", "trange"})


@dataclass(frozen=True, eq=False)
class Scope:
    """A run of a function, or the top level of a cell or file.

    `values` are live names (a frame's locals, the user's namespace).  `call` is the expression
    that called the function, where known; `receiver` the live `self`, or its class.
    """

    source: Source
    body: Body
    values: Mapping[str, Any] = field(default_factory=dict)
    call: Spot | None = None
    receiver: Any = live.MISSING
    current: ast.AST | None = None

    @property
    def function(self) -> str | None:
        return getattr(self.body, "name", None)


@dataclass(frozen=True, eq=False)
class Spot:
    """An expression (or an augmented assignment) where it stands.

    `path` leads from its value to the part meant: `torch.split(x, 2)` with path (1,) is the
    second piece.  `via` are the names through which a walk came here, the user's last line first.
    `spelled` is the text of an expression that does not stand in the source.
    """

    scope: Scope
    node: ast.expr | ast.AugAssign
    path: tuple[Part, ...] = ()
    via: tuple[Spot, ...] = ()
    spelled: str = ""

    @property
    def text(self) -> str:
        """The expression as the user wrote it, on one line."""
        if self.spelled:
            return self.spelled
        segment = ast.get_source_segment(self.scope.source.python, self.node)
        return " ".join((segment or ast.unparse(self.node)).split())

    @property
    def function(self) -> str | None:
        return self.scope.function


class Walker:
    """Walks one failure's program; answers are conclusions from the source (inferred)."""

    def __init__(self, program: Program, incident: Incident) -> None:
        self.program = program
        self.incident = incident
        self._indexes: dict[int, Index] = {}
        self._steps = 0

    # -- places ------------------------------------------------------------------------------

    def index(self, source: Source) -> Index:
        found = self._indexes.get(id(source.tree))
        if found is None:
            found = self._indexes[id(source.tree)] = Index(source.tree)
        return found

    def statement(self, spot: Spot) -> ast.stmt | None:
        return self.index(spot.scope.source).statement(spot.node)

    def place(self, spot: Spot) -> Place:
        """The place of the statement's line on which the expression begins, its span the
        expression."""
        return spot.scope.source.place(spot.node.lineno, spot.function, spot.node)

    def place_of(self, scope: Scope, node: ast.AST) -> Place:
        return scope.source.place(getattr(node, "lineno", 1), scope.function, node)

    def imagined(self, at: Spot, node: ast.expr) -> Spot:
        """An expression that the user did not write there, as if it stood at `at`."""
        index = self.index(at.scope.source)
        for parent in ast.walk(node):
            for child in ast.iter_child_nodes(parent):
                index.parents[child] = parent
        around = index.parents.get(at.node)
        if around is not None:
            index.parents[node] = around
        return Spot(at.scope, node, spelled=ast.unparse(node))

    # -- following a value -------------------------------------------------------------------

    def makers(self, spot: Spot) -> list[Spot]:
        """The expressions that computed the value of `spot`, nearest first; several where
        branches, loops or list elements leave several."""
        found: list[Spot] = []
        self._follow(spot, 0, found, set())
        return found

    def _follow(
        self, spot: Spot, depth: int, found: list[Spot], seen: set[tuple[object, ...]]
    ) -> None:
        self._steps += 1
        mark = (id(spot.node), id(spot.scope.body), spot.path, id(spot.scope.call))
        if depth > _MAX_DEPTH or self._steps > _MAX_STEPS or mark in seen:
            return
        seen.add(mark)
        onward = self._onward(spot)
        if onward is None:
            found.append(spot)
            return
        via = (*spot.via, spot) if key_of(spot.node) is not None else spot.via
        for following in onward:
            self._follow(replace(following, via=via), depth + 1, found, seen)

    def _onward(self, spot: Spot) -> list[Spot] | None:
        """Where the same value was before, or None where this expression computed it."""
        node, path = spot.node, spot.path
        if isinstance(node, ast.Name):
            return [*self._put_in(spot), *self._from_key(spot, node.id)] or None
        if isinstance(node, ast.Attribute):
            return [*self._put_in(spot), *self._from_attribute(spot, node)] or None
        if isinstance(node, ast.Subscript):
            return self._from_subscript(spot, node)
        if isinstance(node, ast.IfExp):
            return [Spot(spot.scope, n, path) for n in (node.body, node.orelse)]
        if isinstance(node, ast.BoolOp):
            return [Spot(spot.scope, n, path) for n in node.values]
        if isinstance(node, (ast.NamedExpr, ast.Await, ast.Starred)):
            return [Spot(spot.scope, node.value, path)]
        if isinstance(node, ast.Call):
            return self._from_call(spot, node)
        return self._from_display(spot)

    def _put_in(self, spot: Spot) -> list[Spot]:
        """What statements put into the container that `spot` takes a part of."""
        if not spot.path:
            return []
        part, rest = spot.path[0], spot.path[1:]
        put = self.insertions(Spot(spot.scope, spot.node), part)
        return [Spot(s.scope, s.node, (*s.path, *rest)) for s in put]

    def _from_display(self, spot: Spot) -> list[Spot] | None:
        """Elements of a literal or a comprehension, where a part is asked for."""
        if not spot.path:
            return None
        if is_container(spot.node):
            return []
        part, rest = spot.path[0], spot.path[1:]
        node = spot.node
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            return [Spot(spot.scope, node.elt, rest)]
        if isinstance(node, ast.DictComp):
            return [Spot(spot.scope, node.value, rest)]
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return [Spot(spot.scope, n, rest) for n in pick(node.elts, part)]
        if isinstance(node, ast.Dict):
            return [Spot(spot.scope, n, rest) for n in pick_value(node, part)]
        return None

    def _from_key(self, spot: Spot, key: str) -> list[Spot]:
        bindings = self.bindings(spot, key)
        return [s for b in bindings for s in self._bound(b, spot.path)]

    def _bound(self, found: tuple[Scope, Binding], path: tuple[Part, ...]) -> Iterator[Spot]:
        scope, binding = found
        if binding.how is How.AUGMENTED and isinstance(binding.statement, ast.AugAssign):
            yield Spot(scope, binding.statement, path)
        elif binding.how is How.ASSIGN and binding.value is not None:
            yield Spot(scope, binding.value, (*binding.path, *path))

    def bindings(self, spot: Spot, key: str) -> list[tuple[Scope, Binding]]:
        """The statements that may have bound `key` as `spot` sees it, nearest first."""
        scope = spot.scope
        index = self.index(scope.source)
        found = [(scope, b) for b in reaching(index, spot.node, key)]
        if any(b.how is not How.AUGMENTED for _, b in found):
            return found
        if isinstance(scope.body, FUNCTIONS):
            return [*found, *self._outside_function(spot, key)]
        return [*found, *self._earlier_cells(scope, key)]

    def _outside_function(self, spot: Spot, key: str) -> list[tuple[Scope, Binding]]:
        scope = spot.scope
        argument = self.argument(scope, key)
        if argument is not None:
            statement = self.statement(argument)
            if statement is None or not isinstance(argument.node, ast.expr):
                return []
            return [(argument.scope, Binding(statement, How.ASSIGN, argument.node, argument.path))]
        head = key.split(".")[0].split("[")[0]
        if isinstance(scope.body, FUNCTIONS) and head in parameters(scope.body):
            return self._through_argument(scope, key, head)
        enclosing = self._enclosing(scope)
        if enclosing is not None:
            found = all_bindings(enclosing.body, key)
            if found:
                return [(enclosing, b) for b in reversed(found)]
            return self._outside_function(Spot(enclosing, spot.node), key)
        return self._earlier_cells(scope, key, whole=True)

    def _through_argument(self, scope: Scope, key: str, head: str) -> list[tuple[Scope, Binding]]:
        """`p.data` inside `f(p)` called as `f(net.w)` is `net.w.data` at the call."""
        argument = self.argument(scope, head)
        outer = None if argument is None or argument.path else key_of(argument.node)
        if argument is None or outer is None:
            return []
        return self.bindings(argument, outer + key[len(head) :])

    def _enclosing(self, scope: Scope) -> Scope | None:
        index = self.index(scope.source)
        around = next((a for a in index.ancestors(scope.body) if isinstance(a, FUNCTIONS)), None)
        return None if around is None else Scope(scope.source, around)

    def _earlier_cells(
        self, scope: Scope, key: str, whole: bool = False
    ) -> list[tuple[Scope, Binding]]:
        """Bindings at the top level of what ran before, newest cell first."""
        found = self._set_by_functions(key)
        for source in self._sources_before(scope.source, whole):
            outer = self.top(source)
            bindings, certain = ends_with(self.index(source), source.tree.body, key)
            found.extend((outer, b) for b in bindings)
            if certain:
                break
        return found

    def _set_by_functions(self, key: str) -> list[tuple[Scope, Binding]]:
        """`global h; h = …` and `cache["k"] = …` inside functions."""
        head = key.split(".")[0].split("[")[0]
        found = []
        for scope in self._users_of_global(key):
            if key != head or declares_global(scope.body, head):
                found += [(scope, b) for b in reversed(all_bindings(scope.body, key))]
        return found

    def _sources_before(self, source: Source, whole: bool) -> list[Source]:
        cells = list(self.program.cells)
        if source.cell is None:
            return [source] if whole else []
        if whole:
            # A function's globals are those of the moment of the call: the failing cell is last.
            return list(reversed(cells))
        earlier = [c for c in cells if c.cell is not None and c.cell < source.cell]
        return list(reversed(earlier))

    def top(self, source: Source) -> Scope:
        """The top level of a cell or file, with the live names behind it."""
        values: Mapping[str, Any] = self.incident.namespace
        if source.cell is None:
            frames = (f.frame for f in self.incident.frames if f.filename == source.filename)
            values = next((f.f_globals for f in frames), {})
        return Scope(source, source.tree, values)

    # -- attributes and subscripts -----------------------------------------------------------

    def _from_attribute(self, spot: Spot, node: ast.Attribute) -> list[Spot]:
        key = key_of(node)
        direct = self._from_key(spot, key) if key is not None else []
        if direct:
            return direct
        base = Spot(spot.scope, node.value)
        owner = self.value(base)
        if live.is_tensor(owner) or isinstance(owner, (types.ModuleType, type)):
            return []
        stores = [s for s in self.stores(owner, node.attr) if not is_none(s.node)]
        if stores:
            return [Spot(s.scope, s.node, (*s.path, *spot.path)) for s in stores]
        return self._from_constructor(base, node.attr, spot.path)

    def _from_constructor(self, base: Spot, attr: str, path: tuple[Part, ...]) -> list[Spot]:
        """`Batch(image=x).image` is x."""
        found = []
        for maker in self.makers(base):
            if isinstance(maker.node, ast.Call) and not maker.path:
                found += [
                    Spot(maker.scope, k.value, path) for k in maker.node.keywords if k.arg == attr
                ]
        return found

    def stores(self, owner: Any, attr: str) -> list[Spot]:
        """The values that the program's statements store in `.attr`, newest source first.

        Where the owner is known, only methods of its class (through `self`) and statements
        outside of classes count.
        """
        found: list[Spot] = []
        for source in self._all_sources(owner):
            for body in bodies(source.tree):
                found.extend(self._stores_in(source, body, owner, attr))
        return found

    def _stores_in(self, source: Source, body: Body, owner: Any, attr: str) -> Iterator[Spot]:
        index = self.index(source)
        cls = index.class_of(body)
        own = isinstance(body, FUNCTIONS) and cls is not None and self._is_class(owner, cls)
        for statement in statements_of(body):
            for target, value, path in stored(statement):
                if not (isinstance(target, ast.Attribute) and target.attr == attr):
                    continue
                by_self = isinstance(target.value, ast.Name) and target.value.id == "self"
                if by_self and not own and owner is not live.MISSING:
                    continue
                yield Spot(self.scope_of(source, body, owner if own else None), value, path)

    def _is_class(self, owner: Any, cls: ast.ClassDef) -> bool:
        kind = owner if isinstance(owner, type) else type(owner)
        return owner is live.MISSING or any(c.__name__ == cls.name for c in kind.__mro__)

    def _all_sources(self, owner: Any) -> list[Source]:
        cells = list(reversed(self.program.cells))
        kind = owner if isinstance(owner, type) else type(owner)
        files = {
            f.__code__.co_filename
            for c in (kind.__mro__ if owner is not live.MISSING else ())
            for f in vars(c).values()
            if isinstance(f, types.FunctionType)
        }
        files |= {f.filename for f in self.incident.frames}
        others = [self.program.source(f) for f in sorted(files)]
        return [*cells, *(s for s in others if s is not None and s.cell is None)]

    def sources(self) -> list[Source]:
        """Everything of the user's that may have run: cells newest first, then files."""
        return self._all_sources(live.MISSING)

    def scope_of(self, source: Source, body: Body, receiver: Any = None) -> Scope:
        """The scope of a function reached without its call; the call is found by name."""
        if isinstance(body, ast.Module):
            return self.top(source)
        known = live.MISSING if receiver is None else receiver
        values = {} if receiver is None else {first_parameter(body): receiver}
        frame = self.frame_scope(body)
        return frame if frame is not None else Scope(source, body, values, None, known)

    def _from_subscript(self, spot: Spot, node: ast.Subscript) -> list[Spot] | None:
        if self._reads_tensor(spot, node):
            return None
        key = key_of(node)
        direct = self._from_key(spot, key) if key is not None else []
        direct = [*self._put_in(spot), *direct]
        if direct:
            return direct
        constant = constant_of(node.slice)
        base = Spot(spot.scope, node.value)
        part: Part = Each.VALUE if constant is None else constant
        inside = self._elements(base, part, spot.path)
        return inside or None

    def _reads_tensor(self, spot: Spot, node: ast.Subscript) -> bool:
        if isinstance(node.slice, (ast.Slice, ast.Tuple)):
            return not isinstance(self.value(Spot(spot.scope, node.value)), (list, tuple))
        return live.is_tensor(self.value(Spot(spot.scope, node.value)))

    def _elements(self, base: Spot, part: Part, path: tuple[Part, ...]) -> list[Spot]:
        """What was put into a container under `part`, nearest first."""
        return self.makers(Spot(base.scope, base.node, (*base.path, part, *path)))

    def insertions(self, base: Spot, part: Part) -> list[Spot]:
        """`base.append(v)`, `base[k] = v` and the like, wherever the container is known as
        `base` or, for an attribute, under the same attribute."""
        found: list[Spot] = []
        for scope, key in self._aliases(base):
            for statement in statements_of(scope.body):
                found += [Spot(scope, v, p) for v, p in inserted(statement, key, part)]
        return found

    def _aliases(self, base: Spot) -> list[tuple[Scope, str]]:
        """The scopes and keys under which the container may be filled."""
        key = key_of(base.node)
        if key is None:
            return []
        found = [(base.scope, key)]
        if isinstance(base.scope.body, ast.Module):
            found += [(self.top(c), key) for c in self._sources_before(base.scope.source, False)]
            found += [(scope, key) for scope in self._users_of_global(key)]
        if isinstance(base.node, ast.Attribute):
            attr = base.node.attr
            owner = self.value(Spot(base.scope, base.node.value))
            for source in self._all_sources(owner):
                found += [
                    (
                        self.scope_of(
                            source, body, owner if is_method(body, self.index(source)) else None
                        ),
                        f"self.{attr}",
                    )
                    for body in bodies(source.tree)
                    if isinstance(body, FUNCTIONS)
                ]
            return found
        for scope, binding in self.bindings(base, key):
            value = binding.value
            if isinstance(scope.body, ast.Module) and scope is not base.scope:
                # A function's global: filled at the top level of any cell.
                found += [(self.top(c), key) for c in self._sources_before(scope.source, True)]
            if binding.how is How.ASSIGN and value is not None and not binding.path:
                found += self._returned_names(Spot(scope, value))
            if scope is not base.scope:
                found.append((scope, key))
        return found

    def _users_of_global(self, key: str) -> list[Scope]:
        """The functions that see the name at the head of `key` as a global."""
        head = key.split(".")[0].split("[")[0]
        return [
            self.scope_of(source, body)
            for source in self.sources()
            for body in bodies(source.tree)
            if isinstance(body, FUNCTIONS)
            and head not in parameters(body)
            and (not all_bindings(body, head) or declares_global(body, head))
        ]

    def _returned_names(self, spot: Spot) -> list[tuple[Scope, str]]:
        """`unknowns = make(...)` was filled inside `make` under the name it returns."""
        if isinstance(spot.node, ast.Call):
            inner = self._from_call(spot, spot.node)
            return [(s.scope, k) for s in inner or () if (k := key_of(s.node)) is not None]
        key = key_of(spot.node)
        return [] if key is None else [(spot.scope, key)]

    # -- calls -------------------------------------------------------------------------------

    def _from_call(self, spot: Spot, node: ast.Call) -> list[Spot] | None:
        """The returned expressions of the user's own function, or the element of an iterable."""
        through = self._through_iteration(spot, node)
        if through is not None:
            return through
        if spot.path and is_container(node):
            return []
        scope = self.callee(spot)
        if scope is None:
            return None
        returned = [Spot(scope, value, spot.path) for value in returns(scope.body)]
        return returned or None

    def _through_iteration(self, spot: Spot, node: ast.Call) -> list[Spot] | None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        attr = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        path = spot.path
        if name in _PASS_THROUGH and node.args and path:
            return [Spot(spot.scope, node.args[0], path)]
        if name == "zip" and len(path) > 1 and isinstance(path[1], int):
            picked = pick(node.args, path[1])
            return [Spot(spot.scope, n, (Each.ITEM, *path[2:])) for n in picked]
        if name == "enumerate" and len(path) > 1 and path[1] == 1 and node.args:
            return [Spot(spot.scope, node.args[0], (Each.ITEM, *path[2:]))]
        if (
            attr == "items"
            and isinstance(node.func, ast.Attribute)
            and len(path) > 1
            and path[1] == 1
        ):
            return self._elements(Spot(spot.scope, node.func.value), Each.VALUE, path[2:]) or None
        if attr == "values" and isinstance(node.func, ast.Attribute) and path:
            return self._elements(Spot(spot.scope, node.func.value), Each.VALUE, path[1:]) or None
        if name == "dict" and path:
            picked = [k.value for k in node.keywords if path[0] in (k.arg, Each.VALUE)]
            return [Spot(spot.scope, n, path[1:]) for n in picked] or None
        return None

    def callee(self, spot: Spot) -> Scope | None:
        """The user's function that a call runs, entered with this call; None for a library."""
        if not isinstance(spot.node, ast.Call):
            return None
        frame = self.frame_scope(spot.node)
        if frame is not None:
            return frame
        function, receiver = self._target(self.value(Spot(spot.scope, spot.node.func)))
        if function is None:
            return self._static_callee(spot)
        found = self.function_node(function)
        if found is None:
            return None
        source, body = found
        values = {} if receiver is live.MISSING else {first_parameter(body): receiver}
        return Scope(source, body, values, spot, receiver)

    def _target(self, value: Any) -> tuple[types.FunctionType | None, Any]:
        """The plain function behind a callable, and its receiver."""
        receiver = live.MISSING
        if isinstance(value, types.MethodType):
            receiver, value = value.__self__, value.__func__
        elif live.is_module(value):
            receiver, value = value, live.class_attribute(type(value), "forward")
        elif not isinstance(value, (types.FunctionType, type, types.BuiltinFunctionType)):
            receiver, value = value, live.class_attribute(type(value), "__call__")
        while isinstance(getattr(value, "__wrapped__", None), types.FunctionType):
            value = value.__wrapped__
        return (value, receiver) if isinstance(value, types.FunctionType) else (None, receiver)

    def _static_callee(self, spot: Spot) -> Scope | None:
        """A call of a local object that no longer lives: its class is read from the source."""
        assert isinstance(spot.node, ast.Call)
        function = spot.node.func
        attr = function.attr if isinstance(function, ast.Attribute) else ""
        base = function.value if isinstance(function, ast.Attribute) else function
        for maker in self.makers(Spot(spot.scope, base)):
            if not isinstance(maker.node, ast.Call):
                continue
            cls = self.value(Spot(maker.scope, maker.node.func))
            if isinstance(cls, type):
                default = "forward" if live.is_module_class(cls) else "__call__"
                method = live.class_attribute(cls, attr or default)
                found = self.function_node(method) if live.is_function(method) else None
                if found is not None:
                    return Scope(*found, {first_parameter(found[1]): cls}, spot, cls)
        return None

    def function_node(self, function: types.FunctionType) -> tuple[Source, FunctionNode] | None:
        """The definition of a live function in the user's source."""
        code = function.__code__
        source = self.program.source(code.co_filename)
        return None if source is None else definition(source, code)

    def argument(self, scope: Scope, name: str) -> Spot | None:
        """The expression passed for a parameter by the call that entered the scope."""
        if not isinstance(scope.body, FUNCTIONS) or name not in parameters(scope.body):
            return None
        calls = [scope.call] if scope.call is not None else self.calls_of(scope)
        for call in calls:
            if isinstance(call.node, ast.Call):
                found = bound_argument(scope.body, call.node, name)
                if found is not None:
                    # A default stands in the definition, an argument at the call.
                    inside = found in defaults(scope.body)
                    return Spot(
                        self._enclosing(scope) or self.top(scope.source) if inside else call.scope,
                        found,
                    )
        return None

    def calls_of(self, scope: Scope) -> list[Spot]:
        """Calls of a function found by its name, newest cell first."""
        index = self.index(scope.source)
        cls = index.class_of(scope.body)
        name = scope.function
        names = {name}
        if cls is not None and name == "__init__":
            names = {cls.name}
        found = []
        for source in self._all_sources(live.MISSING):
            for node in ast.walk(source.tree):
                if isinstance(node, ast.Call) and self._calls(source, node, names, name, scope):
                    outer = self.scope_of(source, self.index(source).body_of(node))
                    found.append(Spot(outer, node))
        return found

    def _calls(
        self, source: Source, node: ast.Call, names: set[str | None], name: str | None, scope: Scope
    ) -> bool:
        function = node.func
        called = getattr(function, "attr", getattr(function, "id", None))
        if called in names:
            return True
        if name in ("forward", "__call__") and scope.receiver is not live.MISSING:
            outer = self.scope_of(source, self.index(source).body_of(node))
            return self.value(Spot(outer, function)) is scope.receiver
        return False

    # -- operands ----------------------------------------------------------------------------

    def operands(self, spot: Spot) -> list[Spot]:
        """What a computing expression read: receiver, arguments, both sides of an operator."""
        node = spot.node
        if isinstance(node, ast.AugAssign):
            earlier = self._before_augmented(spot, node)
            return [*earlier, Spot(spot.scope, node.value)]
        if isinstance(node, ast.Call):
            return [Spot(spot.scope, n) for n in self._call_operands(spot, node)]
        inner = inner_expressions(node)
        return [Spot(spot.scope, n) for n in inner]

    def _before_augmented(self, spot: Spot, node: ast.AugAssign) -> list[Spot]:
        key = key_of(node.target)
        if key is None:
            return []
        at = Spot(spot.scope, node)
        return [s for b in self.bindings(at, key) for s in self._bound(b, ()) if s.node is not node]

    def _call_operands(self, spot: Spot, node: ast.Call) -> Iterator[ast.expr]:
        if isinstance(node.func, ast.Attribute):
            base = self.value(Spot(spot.scope, node.func.value))
            if not isinstance(base, (types.ModuleType, type)) and not live.is_module(base):
                yield node.func.value
        elif isinstance(node.func, ast.Call):
            yield node.func
        for argument in (*node.args, *(k.value for k in node.keywords)):
            yield argument.value if isinstance(argument, ast.Starred) else argument

    # -- live values -------------------------------------------------------------------------

    def value(self, spot: Spot, depth: int = 0) -> Any:
        """The live object an expression names, or live.MISSING; no user code runs.

        For a name that was bound again since, this is the newer object: good enough to tell
        functions, modules and classes, not to tell tensors (see `tensor`).
        """
        if depth > 12 or spot.path or not isinstance(spot.node, ast.expr):
            return live.MISSING
        node = spot.node
        if isinstance(node, ast.Name):
            return self._named(spot, node.id, depth)
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Attribute):
            base = self.value(Spot(spot.scope, node.value), depth + 1)
            if base is live.MISSING or live.is_tensor(base):
                return live.MISSING
            return live.attribute(base, node.attr)
        if isinstance(node, ast.Subscript):
            base = self.value(Spot(spot.scope, node.value), depth + 1)
            key = self.value(Spot(spot.scope, node.slice), depth + 1)
            return live.item(base, key) if isinstance(key, (int, str)) else live.MISSING
        return live.MISSING

    def _named(self, spot: Spot, name: str, depth: int) -> Any:
        scope = spot.scope
        if name in scope.values:
            return scope.values[name]
        if isinstance(scope.body, FUNCTIONS):
            if all_bindings(scope.body, name) or name in parameters(scope.body):
                return self._local(spot, name, depth)
            enclosing = self._enclosing(scope)
            if enclosing is not None:
                found = self._named(Spot(enclosing, spot.node), name, depth + 1)
                if found is not live.MISSING:
                    return found
        namespace = self.top(scope.source).values
        return namespace[name] if name in namespace else live.builtin(name)

    def _local(self, spot: Spot, name: str, depth: int) -> Any:
        """A name of a function that has returned: what it was bound to may live elsewhere."""
        bound = self.bindings(spot, name)
        values = [
            self.value(s, depth + 1) for b in bound[:3] for s in self._bound(b, ()) if not s.path
        ]
        known = [v for v in values if v is not live.MISSING]
        return known[0] if len(known) == 1 else live.MISSING

    def tensor(self, spot: Spot) -> Any:
        """The live tensor an expression's value still is, or None.

        Only where nothing bound the name again after `spot`.
        """
        key = key_of(spot.node)
        if key is None or spot.path or self._bound_later(spot, key):
            return None
        value = self.value(spot)
        return value if live.is_tensor(value) else None

    def _bound_later(self, spot: Spot, key: str) -> bool:
        scope = spot.scope
        if not scope.values:
            return True
        index = self.index(scope.source)
        seen = {id(b.statement) for b in reaching(index, spot.node, key)}
        others = [b for b in all_bindings(scope.body, key) if id(b.statement) not in seen]
        here = self.statement(spot)
        line = here.lineno if here is not None else spot.node.lineno
        if any(b.statement.lineno >= line for b in others):
            return True
        if isinstance(scope.body, FUNCTIONS) or scope.source.cell is None:
            return False
        later = (c for c in self.program.cells if (c.cell or 0) > (scope.source.cell or 0))
        return any(all_bindings(c.tree, key) for c in later)

    # -- frames of the failure ---------------------------------------------------------------

    def frame_scope(self, node: ast.AST) -> Scope | None:
        """The live scope of a function definition, or of the function that a call expression
        entered, where the failure passed through it."""
        return self._frame_scopes.get(id(node))

    @property
    def _frame_scopes(self) -> dict[int, Scope]:
        cached: dict[int, Scope] | None = self.__dict__.get("_frame_map")
        if cached is None:
            from .failing import frame_scopes

            cached = self.__dict__["_frame_map"] = {}
            cached.update(frame_scopes(self))
        return cached
