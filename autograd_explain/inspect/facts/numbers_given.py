"""Values that an object is given and of which it keeps the numbers alone, in a tensor of its own.

`kernel.width = net(z)`, `kernel.initialize(width=net(z))`: the setter, or the method, writes them
into a parameter where nothing is recorded.  The text of the class tells; nothing is run.
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch

from ...arguments import bound_arguments, owner_of, parameters, values_given
from ...isolation.type_checks import class_attribute, is_a
from ...model import Place
from ...program import Source, called_name
from ..dataflow import ExprAt
from ..dataflow.grad_mode import switched_off_around
from ..dataflow.safe_lookup import MISSING, evaluate, own
from ..dataflow.syntax import first_parameter
from ..live.class_source import function_node
from ..scene import Scene

_DEEP = 8  #: functions of objects that a value is followed through
_MODULES = 8  #: of one class, whose methods are looked at


class Kept(NamedTuple):
    """What a rewrite needs of it: the statement, whose attribute got the numbers, and what was
    written there, "" where that is not known or the object does more than to write it."""

    place: Place
    holder: str  #: `kernel`
    attribute: str  #: `raw_width`
    written: str  #: `kernel.inverse(net(z))`
    parameter: bool  #: of a module, which takes no computed tensor in its place
    single: bool  #: of one element: every shape of one fits


@dataclass(frozen=True, eq=False)
class NumbersGiven:
    """A statement gives an object `value`, whose numbers it keeps in `tensor`."""

    value: ExprAt
    tensor: torch.Tensor
    kept: Kept

    @property
    def name(self) -> str:
        """Of the tensor."""
        return f"{self.kept.holder}.{self.kept.attribute}"


@dataclass(frozen=True, eq=False)
class _Written:
    """`attribute` of an object, which the user calls `spelled`, gets the numbers of `value`;
    `alone` says that nothing else is done with it."""

    holder: Any
    spelled: ast.expr
    attribute: str
    value: ast.expr
    others: Mapping[str, Any]  #: what further names in it mean
    alone: bool = True


@dataclass(frozen=True, eq=False)
class _Run:
    """A function of an object's class: what its parameters are in the user's words, those of them
    that are known objects, and which of them is the value."""

    function: types.FunctionType
    node: ast.FunctionDef
    words: Mapping[str, ast.expr]
    objects: Mapping[str, Any]
    given: str

    def value(self, node: ast.expr) -> Any:
        return evaluate(node, lambda name: self.objects.get(name.id, MISSING))

    def spelled(self, node: ast.expr) -> ast.expr:
        """An expression of it in the user's words."""
        return _InWords(self.words).visit(copy.deepcopy(node))  # type: ignore[no-any-return]

    def others(self, node: ast.expr) -> dict[str, Any]:
        """What the names in it mean that are not its parameters."""
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - set(self.words)
        return {n: self.function.__globals__.get(n, MISSING) for n in names}

    def reads(self, node: ast.AST) -> bool:
        """Whether it is computed from the value."""
        return any(isinstance(n, ast.Name) and n.id == self.given for n in ast.walk(node))


class _InWords(ast.NodeTransformer):
    def __init__(self, words: Mapping[str, ast.expr]) -> None:
        self.words = words

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.words.get(node.id, node)


def numbers_given(scene: Scene, wanted: Callable[[ExprAt], bool]) -> Iterator[NumbersGiven]:
    """What the statements of the program give to objects so, of the `wanted` values."""
    for source, statement in scene.index.nodes(ast.stmt):
        for owner, value, gift in _gifts(statement):
            for at in _at(scene, source, value):
                holder = scene.slicer.value(at.inside(owner))
                for written in () if holder is MISSING else gift(holder):
                    tensor = own(written.holder).get(written.attribute)
                    if is_a(tensor, torch.Tensor) and tensor.is_leaf and wanted(at):
                        yield _told(scene, at, statement, written, tensor)


def _at(scene: Scene, source: Source, value: ast.expr) -> list[ExprAt]:
    """An expression where it stands, in a method of a class of modules that of each such module
    that lives."""
    index = scene.slicer.index(source)
    body = index.body_of(value)
    cls = index.class_of(body)
    if isinstance(body, ast.Module) or cls is None or scene.slicer.frame_scope(body) is not None:
        return [scene.slicer.at(source, value)]
    modules = {id(m): m for _, m in scene.names.held_modules if scene.index.is_class(type(m), cls)}
    receivers: Sequence[torch.nn.Module | None] = [*modules.values()][:_MODULES]
    return [ExprAt(scene.slicer.scope_of(source, body, r), value) for r in receivers or [None]]


def _told(
    scene: Scene, value: ExprAt, statement: ast.stmt, written: _Written, tensor: torch.Tensor
) -> NumbersGiven:
    slicer = scene.slicer
    recorded = scene.gradient_tracer.trace(value).carries
    recorded = recorded and switched_off_around(slicer, value) is None
    names = ((ast.Name(n, ast.Load()), meant) for n, meant in written.others.items())
    same = all(m is not MISSING and slicer.value(value.inside(n)) is m for n, m in names)
    kept = Kept(
        value.scope.source.place(statement.lineno, value.function, statement),
        ast.unparse(written.spelled),
        written.attribute,
        ast.unparse(written.value) if written.alone and recorded and same else "",
        is_a(tensor, torch.nn.Parameter),
        tensor.numel() == 1,
    )
    return NumbersGiven(value, tensor, kept)


def _gifts(
    statement: ast.stmt,
) -> Iterator[tuple[ast.expr, ast.expr, Callable[[Any], Iterator[_Written]]]]:
    """The objects that a statement gives something to, with what it gives, and with what tells what
    the object does with it."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Attribute):
            owner, name = target.value, target.attr
            yield owner, value, lambda holder: _by_name(holder, owner, name, value, 0)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        for given in values_given(call):
            yield (
                call.func.value,
                given,
                partial(_by_call, call=call, value=given, deep=0, known={}),
            )


def _by_name(
    holder: Any, owner: ast.expr, name: str, value: ast.expr, deep: int
) -> Iterator[_Written]:
    """What a property's setter does with a value."""
    found = class_attribute(type(holder), name)
    setter = found.fset if isinstance(found, property) else None
    node = function_node(setter)
    if node is not None and isinstance(setter, types.FunctionType) and deep < _DEEP:
        names = parameters(node)
        if len(names) == 2:
            words, objects = {names[0]: owner, names[1]: value}, {names[0]: holder}
            yield from _within(_Run(setter, node, words, objects, names[1]), deep + 1)


def _by_call(
    holder: Any, call: ast.Call, value: ast.expr, deep: int, known: Mapping[int, Any]
) -> Iterator[_Written]:
    """What the method of an object that a call calls does with one of its arguments; of the others
    some are `known` objects, by the ids of their nodes."""
    method = class_attribute(type(holder), called_name(call))
    node, owner = function_node(method), owner_of(call)
    if node is None or not isinstance(method, types.FunctionType) or deep >= _DEEP:
        return
    bound = bound_arguments(node, call)
    objects = {n: known[id(v)] for n, v in bound.items() if id(v) in known}
    objects[first_parameter(node)] = holder
    one = len(call.args) + len(call.keywords) == 1
    for given in (n for n, v in bound.items() if v is value):
        alone = one or bool(deep)  # the user's call is replaced as a whole
        found: Iterator[_Written] = iter(())
        if given in parameters(node):
            found = _within(_Run(method, node, bound, objects, given), deep + 1)
        elif node.args.kwarg is not None and _writes(node):
            alone = one and not _calls_itself(node)
            if is_a(own(holder).get(given), torch.Tensor):
                found = iter((_Written(holder, owner, given, value, {}),))
            else:
                found = _by_name(holder, owner, given, value, deep + 1)
        for written in found:
            yield replace(written, alone=alone and written.alone)


def _writes(node: ast.FunctionDef) -> bool:
    """Whether it copies values into tensors, and sets nothing of its object's."""
    own_name = first_parameter(node)
    nodes = [n for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    stored = [n for n in nodes if isinstance(n.ctx, ast.Store)]
    sets = any(isinstance(n.value, ast.Name) and n.value.id == own_name for n in stored)
    copies = any(n.attr == "copy_" for n in nodes) or any(n.attr == "data" for n in stored)
    return copies and not sets


def _calls_itself(node: ast.FunctionDef) -> bool:
    """Whether a statement of it is a call of another method of its object's."""
    calls = (n.value for n in ast.walk(node) if isinstance(n, ast.Expr))
    owners = (owner_of(c) for c in calls if isinstance(c, ast.Call))
    return any(isinstance(o, ast.Name) and o.id == first_parameter(node) for o in owners)


def _within(run: _Run, deep: int) -> Iterator[_Written]:
    """What the function does with the value: writes it itself, or hands it on."""
    done, alone = _steps(run, run.node.body)
    found = [w for step in done for w in _of_step(run, step, deep)]
    for written in found:
        yield replace(written, alone=alone and written.alone and len(found) == 1)


def _steps(run: _Run, body: list[ast.stmt]) -> tuple[list[ast.stmt], bool]:
    """The statements that do something with the value, and whether these are all that do
    anything."""
    found, alone = [], True
    for statement in body:
        if isinstance(statement, (ast.With, ast.If)):
            inner, only = _steps(run, [*statement.body, *getattr(statement, "orelse", ())])
            found += inner
            plain = isinstance(statement, ast.With) or not inner
            alone &= (only and plain) or _is_for_others(run, statement)
        elif isinstance(statement, (ast.Expr, ast.Assign)) and run.reads(statement):
            found.append(statement)
        else:
            alone &= _does_nothing(statement)
    return found, alone


def _is_for_others(run: _Run, statement: ast.stmt) -> bool:
    """`if not torch.is_tensor(value): value = …`: what is no tensor becomes one."""
    test = statement.test if isinstance(statement, ast.If) and not statement.orelse else None
    asked = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
    if not isinstance(asked, ast.Call) or called_name(asked) not in ("is_tensor", "isinstance"):
        return False
    body = statement.body if isinstance(statement, ast.If) else []
    into = [ast.unparse(t) for s in body if isinstance(s, ast.Assign) for t in s.targets]
    return any(map(run.reads, asked.args[:1])) and into == [run.given] and len(body) == 1


def _does_nothing(statement: ast.stmt) -> bool:
    """A docstring, a check that raises, the `return` of the object."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    of_call = isinstance(statement, ast.Return) and isinstance(statement.value, ast.Call)
    return isinstance(statement, (ast.Raise, ast.Pass, ast.Assert, ast.Return)) and not of_call


def _of_step(run: _Run, step: ast.stmt, deep: int) -> Iterator[_Written]:
    if isinstance(step, ast.Assign):
        target = step.targets[0]
        if isinstance(target, ast.Attribute) and run.reads(step.value):
            yield from _of_store(run, target, step.value, deep)
    elif isinstance(step, ast.Expr) and isinstance(step.value, ast.Call):
        call = step.value
        if isinstance(call.func, ast.Attribute):
            yield from _of_call(run, call, call.func, deep)


def _of_store(run: _Run, target: ast.Attribute, value: ast.expr, deep: int) -> Iterator[_Written]:
    """`self.raw.data = value`, and `self.width = value` where it is a property as well."""
    if target.attr == "data":
        yield from _of_tensor(run, target.value, value)
    elif (holder := run.value(target.value)) is not MISSING:
        owner, given = run.spelled(target.value), run.spelled(value)
        yield from _by_name(holder, owner, target.attr, given, deep)


def _of_tensor(run: _Run, tensor: ast.expr, value: ast.expr) -> Iterator[_Written]:
    """What is written into `self.raw` or `self.raw.data`."""
    if isinstance(tensor, ast.Attribute) and tensor.attr == "data":
        tensor = tensor.value
    holder = run.value(tensor.value) if isinstance(tensor, ast.Attribute) else MISSING
    if holder is not MISSING and isinstance(tensor, ast.Attribute):
        owner, given = run.spelled(tensor.value), run.spelled(value)
        yield _Written(holder, owner, tensor.attr, given, run.others(value))


def _of_call(run: _Run, call: ast.Call, function: ast.Attribute, deep: int) -> Iterator[_Written]:
    """`self.raw.copy_(value)`, and `self.set_width(value)` that hands it on."""
    if function.attr == "copy_" and call.args:
        yield from _of_tensor(run, function.value, call.args[0])
    elif (holder := run.value(function.value)) is not MISSING:
        arguments = values_given(call)
        given = [a for a in arguments if run.reads(a)]
        if len(given) == 1:
            words = {id(a): run.spelled(a) for a in arguments}
            handed = ast.Call(
                ast.Attribute(run.spelled(function.value), function.attr),
                [words[id(a)] for a in call.args],
                [ast.keyword(k.arg, words[id(k.value)]) for k in call.keywords],
            )
            known = {id(words[id(a)]): run.value(a) for a in arguments}
            value, others = words[id(given[0])], run.others(given[0])
            for found in _by_call(holder, handed, value, deep, known):
                yield replace(found, others={**found.others, **others})
