"""Turns the user's source into its twin: the same program with every operation behind a hook.

The twin is what the walk executes on stand-ins.  No call, attribute, operator, import or
iteration of it happens without one of the `_ag_…` hooks of `hooks.py` agreeing to it, so that
nothing outside the walk can be reached.  Python's own control flow, scopes, classes and
generators stay as they are.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import CodeType
from typing import Any, TypeVar

from ...program import Source
from .site import Site

#: The file name of twin code starts with this: real user code is never called.
TWIN = "<twin of "

_LEAVING = (ast.Raise, ast.Return, ast.Continue, ast.Break)
_IN_PLACE = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv",
    ast.FloorDiv: "ifloordiv", ast.Mod: "imod", ast.Pow: "ipow", ast.MatMult: "imatmul",
    ast.BitAnd: "iand", ast.BitOr: "ior", ast.BitXor: "ixor", ast.LShift: "ilshift",
    ast.RShift: "irshift",
}  # fmt: skip
_BINARY = {kind: name[1:] if name not in ("iand", "ior") else name[1:] + "_"
           for kind, name in _IN_PLACE.items()}  # fmt: skip
_COMPARE = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_UNARY = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


class Twins:
    """The compiled twins of a program's sources and their sites, shared by its walks."""

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self._codes: dict[tuple[int, bool], tuple[Source, CodeType | None]] = {}

    def code(self, source: Source, definitions_only: bool = False) -> CodeType | None:
        """The twin of a source, or of its definitions and imports; None where it is no Python."""
        key = id(source), definitions_only
        if key not in self._codes:
            self._codes[key] = source, self._compile(source, definitions_only)
        return self._codes[key][1]

    def _compile(self, source: Source, definitions_only: bool) -> CodeType | None:
        try:
            # A tree of our own: the source's is shared, and this one is changed in place.
            tree = ast.parse(source.python)
            if definitions_only:
                tree.body = [s for s in tree.body if isinstance(s, _DEFINITIONS)]
            twin = _Instrument(source, self.sites).module(tree)
            return compile(twin, f"{TWIN}{source.filename}>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, KeyError):
            return None


class _Instrument(ast.NodeTransformer):
    def __init__(self, source: Source, sites: list[Site]) -> None:
        self.source = source
        self.sites = sites
        self.functions: list[str] = []
        self.classes: list[str] = []
        self.bound: dict[int, ast.AST] = {}

    # -- building blocks -------------------------------------------------------------------------

    def site(
        self,
        node: ast.AST,
        *operands: ast.AST,
        shown: ast.AST | None = None,
        target: ast.AST | None = None,
        prefer: bool = True,
    ) -> ast.Constant:
        """Registers a site and gives its index as the hook's first argument."""
        function = self.functions[-1] if self.functions else None
        target = target or self.bound.get(id(node))
        self.sites.append(
            Site(
                len(self.sites),
                self.source,
                function,
                node,
                shown or node,
                operands,
                target,
                prefer,
            )
        )
        return ast.Constant(len(self.sites) - 1)

    def hook(
        self, name: str, *args: ast.expr, at: ast.AST, keywords: Sequence[ast.keyword] = ()
    ) -> ast.Call:
        func = ast.Name(f"_ag_{name}", ast.Load())
        return _located(ast.Call(func, list(args), list(keywords)), at)

    def expr(self, node: ast.expr) -> ast.expr:
        found = self.visit(node)
        assert isinstance(found, ast.expr)
        return found

    def body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            result = self.visit(statement)
            found.extend(result if isinstance(result, list) else [result])
        return found or [ast.Pass()]

    def mangled(self, name: str) -> str:
        """Python mangles `self.__x` in a class body; a name handed over as text must be."""
        if self.classes and name.startswith("__") and not name.endswith("__"):
            return f"_{self.classes[-1].lstrip('_')}{name}"
        return name

    # -- the module: a statement that fails does not end the walk --------------------------------

    def module(self, tree: ast.Module) -> ast.Module:
        found: list[ast.stmt] = []
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                continue
            index = self.site(statement)
            result = self.visit(statement)
            body = result if isinstance(result, list) else [result]
            fault = ast.Expr(
                self.hook("fault", index, ast.Name("_ag_error", ast.Load()), at=statement)
            )
            handler = ast.ExceptHandler(ast.Name("_ag_Exception", ast.Load()), "_ag_error", [fault])
            found.append(_located(ast.Try(body, [handler], [], []), statement))
        return ast.fix_missing_locations(ast.Module(found, []))

    # -- expressions -----------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> ast.expr:
        func = node.func
        if isinstance(func, ast.Name) and func.id == "super" and not node.args:
            return node
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if isinstance(func, ast.Attribute):
            index = self.site(node, func.value, *arguments)
            head = [index, self.expr(func.value), ast.Constant(self.mangled(func.attr))]
            name = "method"
        else:
            index = self.site(node, *arguments)
            head = [index, self.expr(func)]
            name = "call"
        args = [self.argument(a) for a in node.args]
        keywords = [self.keyword(k) for k in node.keywords]
        return self.hook(name, *head, *args, at=node, keywords=keywords)

    def argument(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Starred):
            spread = self.hook("star", self.expr(node.value), at=node)
            return _located(ast.Starred(spread, ast.Load()), node)
        return self.expr(node)

    def keyword(self, node: ast.keyword) -> ast.keyword:
        value = self.expr(node.value)
        if node.arg is None:
            value = self.hook("kwargs", value, at=node)
        return _located(ast.keyword(node.arg, value), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        value = node.value
        index = self.site(node, value)
        if isinstance(node.ctx, ast.Load):
            name = ast.Constant(self.mangled(node.attr))
            return self.hook("attr", index, self.expr(value), name, at=node)
        node.value = self.hook("slot", index, self.expr(value), at=node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        value = node.value
        if isinstance(node.ctx, ast.Load):
            index = self.site(node, value, node.slice)
            return self.hook("item", index, self.expr(value), self.key(node.slice), at=node)
        shown = self.bound.get(id(node), node)
        index = self.site(node, value, shown=shown, target=value)
        node.value = self.hook("slot", index, self.expr(value), at=node)
        node.slice = self.expr(node.slice)
        return node

    def key(self, node: ast.expr) -> ast.expr:
        """A subscript as an ordinary expression: slices become calls."""
        if isinstance(node, ast.Slice):
            parts = [
                ast.Constant(None) if part is None else self.expr(part)
                for part in (node.lower, node.upper, node.step)
            ]
            return self.hook("slice", *parts, at=node)
        if isinstance(node, ast.Tuple):
            return _located(ast.Tuple([self.key(e) for e in node.elts], ast.Load()), node)
        return self.argument(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        index = self.site(node, node.left, node.right)
        name = ast.Constant(_BINARY[type(node.op)])
        return self.hook(
            "binary", index, name, self.expr(node.left), self.expr(node.right), at=node
        )

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = node.operand
        if isinstance(operand, ast.Constant):
            return node
        if isinstance(node.op, ast.Not):
            node.operand = self.truth(operand)
            return node
        index = self.site(node, operand)
        return self.hook(
            "unary", index, ast.Constant(_UNARY[type(node.op)]), self.expr(operand), at=node
        )

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) > 1 or type(node.ops[0]) not in _COMPARE:
            self.generic_visit(node)
            return node
        left, right = node.left, node.comparators[0]
        index = self.site(node, left, right)
        name = ast.Constant(_COMPARE[type(node.ops[0])])
        return self.hook("binary", index, name, self.expr(left), self.expr(right), at=node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        node.value = self.hook("text", self.expr(node.value), at=node.value)
        if node.format_spec is not None:
            node.format_spec = self.expr(node.format_spec)
        return node

    def visit_Await(self, node: ast.Await) -> ast.expr:
        return self.expr(node.value)

    def truth(self, node: ast.expr, prefer: bool = True, shown: ast.AST | None = None) -> ast.expr:
        index = self.site(node, node, shown=shown, prefer=prefer)
        return self.hook("truth", index, self.expr(node), at=node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        node.test = self.truth(node.test)
        node.body, node.orelse = self.expr(node.body), self.expr(node.orelse)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        self.arguments(node.args)
        self.functions.append("<lambda>")
        node.body = self.expr(node.body)
        self.functions.pop()
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        node.iter = self.iteration(node, node.iter, node.target)
        node.target = self.expr(node.target)
        node.ifs = [self.truth(test) for test in node.ifs]
        node.is_async = 0
        return node

    def iteration(self, loop: ast.AST, iterable: ast.expr, target: ast.expr) -> ast.expr:
        # A comprehension has no position of its own: its iterable stands for it.
        shown = loop if hasattr(loop, "lineno") else iterable
        index = self.site(iterable, iterable, shown=shown, target=target)
        shape = _constant(_shape(target))
        return self.hook("iterate", index, self.expr(iterable), shape, at=iterable)

    # -- statements ------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.bound[id(node.value)] = node.targets[0]
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.bound[id(target)] = node
        first = node.targets[0]
        node.value = self.assigned(node, node.value, first)
        node.targets = [self.expr(t) for t in node.targets]
        return node

    def assigned(self, node: ast.stmt, value: ast.expr, target: ast.expr) -> ast.expr:
        visited = self.expr(value)
        if isinstance(target, ast.Name) and isinstance(visited, (ast.Call, ast.IfExp)):
            index = self.site(value, value, shown=node, target=target)
            return self.hook("bind", index, visited, ast.Constant(target.id), at=value)
        if isinstance(target, (ast.Tuple, ast.List)):
            index = self.site(value, value, shown=node, target=target)
            return self.hook("unpack", index, visited, _constant(_shape(target)), at=value)
        return visited

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        # Dataclasses read annotations; as text they need not be evaluated.
        node.annotation = _located(ast.Constant(ast.unparse(node.annotation)), node.annotation)
        if node.value is not None:
            self.bound[id(node.value)] = node.target
            node.value = self.assigned(node, node.value, node.target)
        node.target = self.visit(node.target)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        target, name = node.target, ast.Constant(_IN_PLACE[type(node.op)])
        index = self.site(node, target, node.value, shown=node, target=_base(target))
        if isinstance(target, ast.Name):
            load = _located(ast.Name(target.id, ast.Load()), target)
            value = self.hook("augment", index, name, load, self.expr(node.value), at=node)
            return _located(ast.Assign([target], value), node)
        if isinstance(target, ast.Attribute):
            attribute = ast.Constant(self.mangled(target.attr))
            where = [self.expr(target.value), attribute]
            hook = "augment_attr"
        else:
            where = [self.expr(target.value), self.key(target.slice)]
            hook = "augment_item"
        call = self.hook(hook, index, name, *where, self.expr(node.value), at=node)
        return _located(ast.Expr(call), node)

    def visit_If(self, node: ast.If) -> ast.stmt:
        prefer = not isinstance(node.body[-1], _LEAVING) or bool(node.orelse)
        node.test = self.truth(node.test, prefer=prefer, shown=node)
        node.body, node.orelse = self.body(node.body), self.body(node.orelse) if node.orelse else []
        return node

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        index = self.site(node.test, shown=node)
        enter = ast.Expr(self.hook("loop", index, at=node))
        test = self.hook("while", ast.Constant(index.value), self.expr(node.test), at=node.test)
        node.test = test
        node.body, node.orelse = self.body(node.body), self.body(node.orelse) if node.orelse else []
        return [_located(enter, node), node]

    def visit_For(self, node: ast.For | ast.AsyncFor) -> ast.stmt:
        iterable = self.iteration(node, node.iter, node.target)
        target = self.expr(node.target)
        body = self.body(node.body)
        orelse = self.body(node.orelse) if node.orelse else []
        return _located(ast.For(target, iterable, body, orelse), node)

    visit_AsyncFor = visit_For

    def visit_With(self, node: ast.With | ast.AsyncWith) -> ast.stmt:
        items = []
        for item in node.items:
            index = self.site(item.context_expr)
            context = self.hook("enter", index, self.expr(item.context_expr), at=item.context_expr)
            variable = None if item.optional_vars is None else self.expr(item.optional_vars)
            items.append(ast.withitem(context, variable))
        return _located(ast.With(items, self.body(node.body)), node)

    visit_AsyncWith = visit_With

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        index = self.site(node.test)
        return _located(ast.Expr(self.hook("truth", index, self.expr(node.test), at=node)), node)

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        inside = self.hook("trying", at=node)
        body = ast.With([ast.withitem(inside, None)], self.body(node.body))
        for handler in node.handlers:
            if handler.type is None:
                handler.type = _located(ast.Name("_ag_Exception", ast.Load()), handler)
            else:
                handler.type = self.hook("caught", self.expr(handler.type), at=handler.type)
            handler.body = self.body(handler.body)
        node.body = [_located(body, node)]
        node.orelse = self.body(node.orelse) if node.orelse else []
        node.finalbody = self.body(node.finalbody) if node.finalbody else []
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        # Patterns are no expressions: they stay as written.
        node.guard = None if node.guard is None else self.truth(node.guard)
        node.body = self.body(node.body)
        return node

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            whole = ast.Constant(alias.asname is not None)
            value = self.hook("import", ast.Constant(alias.name), whole, at=node)
            found.append(_located(ast.Assign([ast.Name(name, ast.Store())], value), node))
        return found

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        module, level = ast.Constant(node.module or ""), ast.Constant(node.level)
        for alias in node.names:
            if alias.name == "*":
                call = self.hook("import_all", module, level, at=node)
                found.append(_located(ast.Expr(call), node))
                continue
            value = self.hook("import_from", module, ast.Constant(alias.name), level, at=node)
            target = ast.Name(alias.asname or alias.name, ast.Store())
            found.append(_located(ast.Assign([target], value), node))
        return found

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
        decorators = [self.decorator(d) for d in node.decorator_list]
        self.arguments(node.args)
        self.functions.append(node.name)
        # A class inside a function starts a new naming scope, a function does not.
        body = self.body(node.body)
        self.functions.pop()
        twin = ast.FunctionDef(node.name, node.args, body, decorators)
        setattr(twin, "type_params", [])  # noqa: B010  (Python 3.12 asks for it)
        return _located(twin, node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def decorator(self, node: ast.expr) -> ast.expr:
        index = self.site(node)
        return self.hook("decorate", index, self.expr(node), at=node)

    def arguments(self, node: ast.arguments) -> None:
        everything = [*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg]
        for argument in everything:
            if argument is not None:
                argument.annotation = None
        node.defaults = [self.expr(d) for d in node.defaults]
        node.kw_defaults = [None if d is None else self.expr(d) for d in node.kw_defaults]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        node.decorator_list = [self.decorator(d) for d in node.decorator_list]
        name = ast.Constant(node.name)
        node.bases = [self.hook("base", self.argument(b), name, at=b) for b in node.bases]
        node.keywords = [self.keyword(k) for k in node.keywords]
        if hasattr(node, "type_params"):
            node.type_params = []
        functions, self.functions = self.functions, [*self.functions, node.name]
        self.classes.append(node.name)
        # Whatever Python calls when an object goes would run after the walk.
        body = self.body([s for s in node.body if getattr(s, "name", "") != "__del__"])
        self.classes.pop()
        self.functions = functions
        mark = ast.Assign([ast.Name("_ag_twin", ast.Store())], ast.Constant(True))
        node.body = [*body, _located(mark, node)]
        return node


_Node = TypeVar("_Node", bound=ast.AST)


def _located(node: _Node, at: ast.AST) -> _Node:
    return ast.copy_location(node, at)


def _base(target: ast.expr) -> ast.expr:
    """What `x[i] += v` writes to: `x`."""
    return target.value if isinstance(target, ast.Subscript) else target


def _constant(value: Any) -> ast.Constant:
    return ast.Constant(value)


def _shape(target: ast.expr) -> object:
    """The names a target binds: "x", or nested tuples of names; "*" for a starred part."""
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, (ast.Tuple, ast.List)):
        return tuple(_shape(e) for e in target.elts)
    return "*" if isinstance(target, ast.Starred) else ""
