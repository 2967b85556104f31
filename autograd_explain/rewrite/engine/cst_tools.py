"""Small tools on expressions: build, compare, read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

import libcst as cst
from libcst.helpers import parse_template_expression, parse_template_statement

from .tree import Statement, Tree, normal


def expression(template: str, **nodes: Any) -> cst.BaseExpression:
    """`expression("{x}.clone()", x=node)`: an expression made from a pattern, with parentheses
    where what is put in needs them: `(a + b).clone()`."""
    codes = {name: cst.Module(()).code_for_node(node) for name, node in nodes.items()}
    for name in _loose(template, codes):
        nodes[name] = parenthesised(nodes[name])
    return parse_template_expression(template, **nodes)


def filled(template: str, **codes: str) -> str:
    """The same with text: `filled("{x}.clone()", x="a + b")` is `(a + b).clone()`.  What is called
    `arguments` has its brackets."""
    loose = _loose(template, codes)
    return _put(template, {n: f"({code})" if n in loose else code for n, code in codes.items()})


def _loose(template: str, codes: Mapping[str, str]) -> list[str]:
    """Those that need parentheses, without which the pattern says something else."""
    wrapped = {n: code if n == "arguments" else f"({code})" for n, code in codes.items()}
    meant = normal(_put(template, wrapped))
    whole = {n: normal(_put(template, {**wrapped, n: code})) for n, code in codes.items()}
    return [] if meant is None else [name for name, found in whole.items() if found != meant]


def fitted(tree: Tree, old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
    """An expression as it may stand in the place of another, in parentheses where it needs them."""
    whole = old
    for outer in tree.ancestors(old):
        if isinstance(outer, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            break
        whole = outer if isinstance(outer, cst.BaseExpression) else whole

    def said(inside: cst.BaseExpression) -> str | None:
        made = whole.deep_replace(old, inside)
        return normal(tree.code(made)) if isinstance(made, cst.CSTNode) else None

    meant = said(parenthesised(new))
    return new if meant is None or said(new) == meant else parenthesised(new)


def _put(template: str, codes: Mapping[str, str]) -> str:
    return re.sub(r"{([\w.]+)}", lambda found: codes.get(found[1], found[0]), template)


def make(template: str, **nodes: Any) -> cst.BaseSmallStatement:
    """`make("{x} = {x}.clone()", x=node)`: a one-line statement made from a pattern."""
    line = cst.ensure_type(parse_template_statement(template, **nodes), cst.SimpleStatementLine)
    return line.body[0]


def block(template: str, **nodes: Any) -> cst.BaseCompoundStatement:
    """The same of a statement with others in it."""
    made = parse_template_statement(template, **nodes)
    assert isinstance(made, cst.BaseCompoundStatement)
    return made


def parse(code: str) -> cst.BaseExpression | None:
    """An expression given as text; None where it is none."""
    try:
        return cst.parse_expression(code)
    except (cst.ParserSyntaxError, RecursionError):
        return None


def method(node: cst.BaseExpression, call: str) -> cst.BaseExpression:
    """`node.call`: `(a + b).detach()`."""
    return expression("{x}." + call, x=node)


def parenthesised(node: cst.BaseExpression) -> cst.BaseExpression:
    if node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """The node without its own outer parentheses."""
    return node.with_changes(lpar=[], rpar=[]) if node.lpar else node


def dotted(node: cst.CSTNode | None) -> str | None:
    """`torch.nn.functional` for a chain of plain names, else None."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        left = dotted(node.value)
        return None if left is None else f"{left}.{node.attr.value}"
    return None


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and everything in it, in the order of the text."""
    yield node
    for child in node.children:
        yield from walk(child)


def head(statement: Statement | None) -> Iterator[cst.CSTNode]:
    """The nodes of a statement without the statements inside it (its header, its value …)."""
    for child in () if statement is None else statement.children:
        if not isinstance(child, _INNER):
            yield from walk(child)


_INNER = (
    *(cst.BaseSuite, cst.BaseCompoundStatement),
    *(cst.Else, cst.Finally, cst.ExceptHandler, cst.MatchCase),
)


def calls_in(statement: Statement | None) -> list[cst.Call]:
    """The calls in a statement without the statements inside it, outermost first."""
    return [n for n in head(statement) if isinstance(n, cst.Call)]


def find(tree: Tree, statement: Statement, code: str) -> list[cst.BaseExpression]:
    """The places in a statement where the expression `code` is read, outermost first."""
    wanted, stored = type(parse(code)), set(stores(statement))
    nodes = (n for n in head(statement) if isinstance(n, cst.BaseExpression) and n not in stored)
    alike = (n for n in nodes if type(n) is wanted and not is_label(tree, n))
    return [node for node in alike if same(tree, node, code)]


def is_label(tree: Tree, node: cst.CSTNode) -> bool:
    """The name behind a dot, before `=` in a call or of a parameter is no expression of its own."""
    parent = tree.parents.get(node)
    if isinstance(parent, cst.Attribute):
        return parent.attr is node
    if isinstance(parent, cst.Param):
        return parent.name is node
    return isinstance(parent, cst.Arg) and parent.keyword is node


def named(node: cst.CSTNode, name: str) -> Iterator[cst.Name]:
    """Where a name stands in a node, be it behind a dot."""
    return (n for n in walk(node) if isinstance(n, cst.Name) and n.value == name)


def elsewhere(tree: Tree, name: cst.Name) -> Iterator[cst.Name]:
    """The other places in its function, or cell, where a name stands."""
    found = named(tree.scope_of(name), name.value)
    return (node for node in found if node is not name and not is_label(tree, node))


def same(tree: Tree, node: cst.CSTNode, code: str | None) -> bool:
    """Whether a node reads as `code`, layout aside."""
    return code is not None and normal(tree.code(node)) == normal(code)


def stores(statement: Statement) -> list[cst.CSTNode]:
    """The nodes that a statement writes: targets, and what leads to them (`x` in `x[i] = v`)."""
    found: list[cst.CSTNode] = []
    for target in targets(statement):
        found += _written(target)
    for node in head(statement):
        if isinstance(node, (cst.CompFor, cst.NamedExpr)):
            found += _written(node.target)
    return found


def targets(statement: cst.CSTNode | None) -> list[cst.BaseExpression]:
    """The target expressions of an assignment, a loop, a `with` …, as they stand."""
    if isinstance(statement, cst.Assign):
        return [t.target for t in statement.targets]
    if isinstance(statement, (cst.AugAssign, cst.AnnAssign, cst.For)):
        return [statement.target]
    if isinstance(statement, cst.With):
        names = [item.asname.name for item in statement.items if item.asname is not None]
        return [name for name in names if isinstance(name, cst.BaseExpression)]
    if isinstance(statement, cst.Del):
        return [statement.target]
    return []


def single_targets(statement: cst.CSTNode | None) -> list[cst.BaseExpression]:
    """What a statement gives values, one by one: of `a, (b, c) = x` three."""
    return [leaf for target in targets(statement) for leaf in unpacked(target)]


def named_targets(statement: cst.CSTNode | None) -> set[str]:
    """Those that are plain names and attributes: `a`, `self.h`."""
    return {path for leaf in single_targets(statement) if (path := dotted(leaf))}


def pairs(statement: cst.CSTNode | None) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """What a statement gives to what, one by one: of `h, c = x, y` two; what it unpacks aside."""
    value = statement.value if isinstance(statement, (cst.Assign, cst.AnnAssign)) else None
    return [pair for t in targets(statement) if value is not None for pair in _paired(t, value)]


def _paired(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    if not isinstance(target, (cst.Tuple, cst.List)):
        return [(target, value)]
    elements = value.elements if isinstance(value, (cst.Tuple, cst.List)) else ()
    starred = any(isinstance(e, cst.StarredElement) for e in (*target.elements, *elements))
    if starred or len(elements) != len(target.elements):
        return []
    both = zip(target.elements, elements, strict=True)
    return [pair for t, v in both for pair in _paired(t.value, v.value)]


def clauses(node: cst.CSTNode) -> Iterator[cst.For | cst.CompFor]:
    """What binds names in a loop or a comprehension, the outermost first."""
    if isinstance(node, cst.For):
        yield node
    clause: cst.CompFor | None = getattr(node, "for_in", None)
    while clause is not None:
        yield clause
        clause = clause.inner_for_in


def unpacked(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The single targets in a target: `a, (b, c)` gives three."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return [leaf for element in target.elements for leaf in unpacked(element.value)]
    return [target]


def is_number(node: cst.BaseExpression) -> bool:
    """Whether an expression is a number whatever the program does: `-1e9`, `float("inf")`."""
    if isinstance(node, cst.BaseNumber):
        return True
    if isinstance(node, cst.Name):
        return node.value in {"True", "False"}
    if isinstance(node, cst.UnaryOperation):
        return is_number(node.expression)
    if isinstance(node, cst.BinaryOperation):
        return is_number(node.left) and is_number(node.right)
    if isinstance(node, cst.Call):
        plain = isinstance(node.func, cst.Name) and node.func.value in {"float", "int"}
        return plain and all(
            isinstance(a.value, (cst.BaseString, cst.BaseNumber)) for a in node.args
        )
    module, _, name = (dotted(node) or "").partition(".")
    return module in ("math", "np", "numpy", "torch") and name in ("pi", "e", "inf", "nan")


def method_name(node: cst.CSTNode | None) -> str:
    """`add_` of the call `x.add_(1)`; "" for anything else."""
    function = node.func if isinstance(node, cst.Call) else None
    return function.attr.value if isinstance(function, cst.Attribute) else ""


def called_on(node: cst.CSTNode | None, *methods: str) -> cst.BaseExpression | None:
    """`x` of the call `x.method(…)`, or of a statement that is one: of these methods, if any."""
    node = node.value if isinstance(node, cst.Expr) else node
    function = node.func if isinstance(node, cst.Call) else None
    if not isinstance(function, cst.Attribute):
        return None
    return function.value if not methods or function.attr.value in methods else None


def called_name(node: cst.CSTNode | None) -> str:
    """The last name of what a call calls, `chunk` of `x.chunk(2)` and of `chunk(x, 2)`; "" for
    anything else."""
    function = node.func if isinstance(node, cst.Call) else None
    name = function.attr if isinstance(function, cst.Attribute) else function
    return name.value if isinstance(name, cst.Name) else ""


def whole_value(statement: Statement | None) -> cst.BaseExpression | None:
    """The one value that a statement assigns or returns; None where it is unpacked."""
    if isinstance(statement, (cst.AnnAssign, cst.Return)):
        return statement.value
    if isinstance(statement, cst.Assign):
        unpacks = any(isinstance(t, (cst.Tuple, cst.List)) for t in targets(statement))
        return None if unpacks else statement.value
    return None


def is_starred(tree: Tree, node: cst.CSTNode) -> bool:
    """Whether a star stands before an expression: it is no value of its own."""
    parent = tree.parents[node]
    starred = isinstance(parent, cst.Arg) and bool(parent.star)
    return starred or isinstance(parent, cst.StarredElement)


def literal_bool(node: cst.BaseExpression) -> bool | None:
    return {"True": True, "False": False}.get(node.value) if isinstance(node, cst.Name) else None


def keyword(call: cst.Call, name: str) -> cst.Arg | None:
    """The argument given as `name=…`."""
    return next((a for a in call.args if a.keyword is not None and a.keyword.value == name), None)


def positional(call: cst.Call) -> list[cst.Arg]:
    """The arguments given by position; [] where a `*` makes positions unknown."""
    if any(a.star for a in call.args):
        return []
    return [a for a in call.args if a.keyword is None]


def positional_parameters(function: cst.FunctionDef) -> list[str]:
    """The names of the parameters that a position can fill."""
    return [p.name.value for p in (*function.params.posonly_params, *function.params.params)]


def given_by(call: cst.Call) -> list[tuple[str, cst.BaseExpression]]:
    """A call's arguments as `arguments.bind` wants them."""
    return [(a.star or ("" if a.keyword is None else a.keyword.value), a.value) for a in call.args]


def without(call: cst.Call, *gone: cst.Arg) -> cst.Call:
    """The call without some arguments; commas and layout of the others stay."""
    kept = [a for a in call.args if a not in gone]
    if kept and len(kept) < len(call.args):
        kept[-1] = kept[-1].with_changes(
            comma=call.args[-1].comma, whitespace_after_arg=call.args[-1].whitespace_after_arg
        )
    return call.with_changes(args=kept)


def runs_once(tree: Tree, node: cst.CSTNode, statement: Statement) -> bool:
    """Whether a statement evaluates what is in it just once, not perhaps or many times."""
    around = takewhile(lambda outer: outer is not statement, tree.ancestors(node))
    return not any(isinstance(outer, _SOMETIMES) for outer in around)


_SOMETIMES = (cst.Lambda, cst.BaseComp, cst.BooleanOperation, cst.IfExp)


def repeatable(node: cst.CSTNode) -> bool:
    """Whether an expression can be evaluated twice: it calls, awaits and assigns nothing."""
    once = (cst.Call, cst.Await, cst.Yield, cst.NamedExpr)
    return not any(isinstance(n, once) for n in walk(node))


def _written(target: cst.BaseExpression) -> list[cst.CSTNode]:
    inner: list[cst.BaseExpression] = []
    if isinstance(target, (cst.Tuple, cst.List)):
        inner = [element.value for element in target.elements]
    elif isinstance(target, (cst.StarredElement, cst.Subscript, cst.Attribute)):
        inner = [target.value]
    return [target, *(node for part in inner for node in _written(part))]


class Renamed(cst.CSTTransformer):
    """Puts expressions in the place of names, those behind a dot and before `=` apart."""

    def __init__(self, instead: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self._instead = instead

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        new = self._instead.get(original_node.value)
        return updated_node if new is None else new.deep_clone()

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)
